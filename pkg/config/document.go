package config

import "fmt"

// minimalDocument is the example of a processors file in mistakes.
const minimalDocument = "processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]"

// documentReader reads a processors document and the connections that it names.
type documentReader struct {
	reader
	lookup      func(string) (string, bool)
	connections map[string]cosmosResult // by the name of the setting: thousands of processors may share one
}

type cosmosResult struct {
	connection CosmosConnection
	err        error
}

// load reads a document and adds what is wrong with it to mistakes.
func load(file string, text []byte, lookup func(string) (string, bool), mistakes *Mistakes) []Processor {
	root := parseTree(file, text, mistakes)
	if root == nil {
		return nil
	}
	d := documentReader{
		reader:      reader{file: file, mistakes: mistakes},
		lookup:      lookup,
		connections: map[string]cosmosResult{},
	}
	o := d.object(root)
	defaults := d.defaults(o.get("defaults"))
	items := o.list("processors")
	o.close()
	if len(items) == 0 && (root.isNull() || o.sound("processors")) {
		mistakes.add(Mistake{File: file, Line: root.line, Column: root.column, Field: "processors", Text: "is empty; allowed is at least one processor, as in " + minimalDocument})
	}
	processors := make([]Processor, len(items))
	names := map[string]*node{}
	for i, item := range items {
		if !item.isObject() {
			d.mistake(item, item.is()+"; allowed is an object, as in "+minimalDocument)
			continue
		}
		p, name := d.processor(overlay(defaults, item)), item.member("name")
		if first := names[p.Name]; first != nil {
			d.mistake(name, fmt.Sprintf("%s is the name of another processor, on line %d; allowed is a name of its own", plain(p.Name), first.line))
		} else if p.Name != "" {
			names[p.Name] = name
		}
		processors[i] = p
	}
	return processors
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
		if m.name == "name" {
			d.mistake(m.value, "has no default; allowed is a name of its own in every processor")
			continue
		}
		base.members = append(base.members, m)
	}
	return &base
}
