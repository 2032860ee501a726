package config

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// minimalDocument is the example of a processors file in mistakes.
const minimalDocument = "processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]"

// documentReader reads a processors document and the connections that it names.
type documentReader struct {
	reader
	lookup      func(string) (string, bool)
	connections map[string]cosmosResult // by the name of the setting: thousands of processors may share one
	signals     signalQueues
}

type cosmosResult struct {
	connection CosmosConnection
	err        error
}

// Document is what a processors document says.
type Document struct {
	Processors []Processor // in the order of the document, at least one
	Groups     []Group     // in the order of the document
}

// load reads a document and adds what is wrong with it to mistakes. It also returns the signal queues, which
// are still to be compared with the settings.
func load(file string, text []byte, lookup func(string) (string, bool), mistakes *Mistakes) (Document, signalQueues) {
	before := len(*mistakes)
	root := parseTree(file, text, mistakes)
	if root == nil {
		return Document{}, signalQueues{}
	}
	if other := foreignDocument(root); other != "" {
		*mistakes = append((*mistakes)[:before], Mistake{File: file, Line: root.line, Column: root.column, Text: other})
		return Document{}, signalQueues{}
	}
	d := documentReader{
		reader:      reader{file: file, mistakes: mistakes},
		lookup:      lookup,
		connections: map[string]cosmosResult{},
	}
	d.signals.reader = d.reader
	o := d.object(root)
	defaults := d.defaults(o.get("defaults"))
	groups := o.list("groups")
	items := o.list("processors")
	o.close()
	if len(items) == 0 && (root.isNull() || o.sound("processors")) {
		mistakes.Add(Mistake{File: file, Line: root.line, Column: root.column, Field: "processors", Text: "is empty; allowed is at least one processor, as in " + minimalDocument})
	}
	var read Document
	taken := names{}
	rivals := rivals{reader: d.reader, leases: map[leases][]rival{}, targets: map[thing]rival{}}
	shared := sharedContainers{reader: d.reader, first: map[string]sharedContainer{}}
	for _, item := range groups {
		if !item.isObject() {
			d.mistake(item, item.is()+"; allowed is an object, as in "+minimalGroups)
			continue
		}
		g := d.group(item)
		read.Groups = append(read.Groups, g)
		d.takeName(taken, "group", g.Name, item)
		rivals.addTarget(g.Name, g.Target, item)
		d.signals.add(g.SignalQueue, item.member("signalQueue"))
	}
	for _, item := range items {
		if !item.isObject() {
			d.mistake(item, item.is()+"; allowed is an object, as in "+minimalDocument)
			continue
		}
		whole := overlay(defaults, item)
		p := d.processor(whole)
		read.Processors = append(read.Processors, p)
		d.takeName(taken, "processor", p.Name, item)
		d.checkGroup(p.Group, whole.member("group"), read.Groups)
		rivals.addProcessor(p, item)
		shared.add(p, item)
		d.signals.add(p.SignalQueue, whole.member("signalQueue"))
		d.checkSignalQueue(p, whole)
	}
	return read, d.signals
}

// names are those of the processors and groups that were read, which share one space: a name is a
// key of the state table, and stands for either in URLs.
type names map[string]namedEntry

type namedEntry struct {
	kind string // processor or group
	line int
}

// takeName reports a name that is taken.
func (d *documentReader) takeName(taken names, kind, name string, item *node) {
	if name == "" {
		return // missing or wrong, which is a mistake of its own
	}
	at := item.member("name")
	if first, twice := taken[name]; twice {
		other := "a " + first.kind
		if first.kind == kind {
			other = "another " + kind
		}
		d.mistake(at, fmt.Sprintf("%s is the name of %s, on line %d; allowed is a name of its own", yamltree.QuoteName(name), other, first.line))
		return
	}
	taken[name] = namedEntry{kind, at.line}
}

// defaults validates the defaults on their own, so that a mistake in them is reported even where
// every processor overrides it. It returns them for overlay, nil where there are none.
func (d *documentReader) defaults(n *node) *node {
	if n == nil {
		return nil
	}
	d.partial = true
	d.processor(n)
	d.partial = false
	base := *n
	base.members = nil
	for _, m := range n.members {
		switch m.name {
		case "name":
			d.mistake(m.value, "has no default; allowed is a name of its own in every processor")
			continue
		case "signalQueue":
			d.mistake(m.value, "has no default; allowed is a queue of its own in every processor")
			continue
		}
		base.members = append(base.members, m)
	}
	return &base
}
