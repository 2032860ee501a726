package config

import (
	"cmp"
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Document is what a processors document says.
type Document struct {
	Processors []Processor // in the order of the document, at least one
	Groups     []Group     // in the order of the document
}

// documentReader reads a document of any kind by its schema, and by the rules in rules.go.
type documentReader struct {
	form     *yamltree.Form
	root     *yamltree.Node // its entries inherit from defaults
	mistakes *Mistakes
	lookup   func(string) (string, bool)
	claims   map[string]claim
	events   *Events // whose namespace has the signal queues; nil = unknown
}

// newDocumentReader parses a document and validates it by its schema. It returns nil, and adds a
// mistake, if the document cannot be read at all. list names the list that each document has.
func newDocumentReader(file string, text []byte, f *yamltree.Form, list string, mistakes *Mistakes) *documentReader {
	documents, wrong := yamltree.Parse(file, text)
	if len(documents) == 0 {
		if len(wrong) == 0 {
			mistakes.Add(Mistake{File: file, Line: 1, Field: list, Text: "is empty; " + yamltree.Allowed(f.At(list))})
		}
		*mistakes = append(*mistakes, wrong...)
		return nil
	}
	*mistakes = append(*mistakes, wrong...)
	if len(documents) > 1 {
		mistakes.Add(documents[1].Mistake("a second document begins here; allowed is one document, with all " + list + " in its list"))
	}
	*mistakes = append(*mistakes, f.Validate(documents[0])...)
	d := &documentReader{form: f, root: documents[0], mistakes: mistakes, claims: map[string]claim{}}
	d.checkValues(d.root)
	for _, e := range d.entries(list) {
		e.node.Inherit(d.root.Get("defaults"))
	}
	return d
}

// entry is an item of a document's list.
type entry struct {
	*documentReader
	node *yamltree.Node
}

// entries returns the items of a list that are objects.
func (d *documentReader) entries(list string) (all []entry) {
	for _, item := range d.root.Get(list).Items {
		if item.IsObject() {
			all = append(all, entry{d, item})
		}
	}
	return all
}

// fields reads an entry of a list, with the defaults of the schema. It reads a field with a mistake
// as null, and leaves out an item with one.
func fields[T any](e entry, list string) T {
	decoded, err := yamltree.Decode[T](e.form.At(list, "0"), e.node.Value())
	if err != nil {
		e.mistake(e.node, "cannot be read ("+err.Error()+"); allowed is what the schema allows")
	}
	return decoded
}

// load reads a document and adds its mistakes. events is nil if the settings were not read.
func load(file string, text []byte, lookup func(string) (string, bool), events *Events, mistakes *Mistakes) (read Document) {
	d := newDocumentReader(file, text, processorsForm(), "processors", mistakes)
	if d == nil {
		return Document{}
	}
	d.lookup, d.events = lookup, events
	for _, e := range d.entries("groups") {
		f := fields[groupFields](e, "groups")
		f.Policy = scaling.GroupPolicy{MinReplicas: f.MinReplicaCount, MaxReplicas: f.MaxReplicaCount}
		e.checkBounds(f.MinReplicaCount, f.MaxReplicaCount)
		e.claimName(f.Name)
		e.claimTarget(f.Name, f.Target)
		e.claimSignalQueue(f.SignalQueue)
		read.Groups = append(read.Groups, f.Group)
	}
	for _, e := range d.entries("processors") {
		p := e.processor()
		read.Processors = append(read.Processors, p)
		e.claimName(p.Name)
		e.claimLeases(p)
		if p.Group == "" {
			e.claimTarget(p.Name, p.Target) // else that of the group counts
		}
		e.claimSignalQueue(p.SignalQueue)
	}
	d.checkGroups(read)
	containers := func(p Processor) [5]string {
		return [5]string{p.Connection.Endpoint, p.DatabaseID, p.ContainerID, p.LeaseConnection.Endpoint, p.LeaseDatabaseID + "/" + p.LeaseContainerID}
	}
	names := map[[5]string][]string{}
	for _, p := range read.Processors {
		names[containers(p)] = append(names[containers(p)], p.ProcessorName)
	}
	for i, p := range read.Processors {
		read.Processors[i].NamesInUse = names[containers(p)]
	}
	return read
}

// processor reads one processor.
func (e entry) processor() Processor {
	f := fields[processorFields](e, "processors")
	p := f.Processor
	p.Policy = f.policyFields.policy()
	p.StartFrom, _ = parseStartFrom(f.StartFrom) // the schema checked these
	p.Schedule, _ = crontab.ParseNCRONTAB(f.Schedule)
	p.IdleSchedule, _ = crontab.ParseNCRONTAB(f.IdleSchedule)
	p.Connection = e.connection(e.at("connection"), f.Connection, CosmosConnection{})
	p.LeaseConnection = e.connection(e.at("leaseConnection"), f.LeaseConnection, p.Connection)
	p.LeaseDatabaseID = cmp.Or(p.LeaseDatabaseID, p.DatabaseID)
	p.AccountHost = cmp.Or(p.AccountHost, p.Connection.Host)
	p.Throughput = e.throughput(f.Throughput, p)
	e.checkPolicy(f.policyFields)
	return p
}

// connection reads the connection in a setting, which is the inherited one if there is no name.
func (e entry) connection(at *yamltree.Node, name string, inherited CosmosConnection) CosmosConnection {
	if name == "" {
		return inherited
	}
	connection, err := ParseCosmosConnection(e.lookup, name)
	if err != nil {
		e.mistake(at, err.Error())
		return CosmosConnection{}
	}
	return connection
}

// throughput reads the containers of a processor, whose connection and database are defaults.
func (e entry) throughput(f throughputFields, p Processor) Throughput {
	t := Throughput{Mode: f.Mode, ScaleDownAfter: time.Duration(f.ScaleDownAfter)}
	list, mode := e.at("throughput.containers"), e.at("throughput.mode")
	switch {
	case mode.Bad || list.Bad:
	case len(list.Items) > 0 && !mode.Present():
		e.mistake(list, "mode is missing; allowed are recommend and apply, or off")
	case len(list.Items) == 0 && t.Mode != ThroughputOff:
		e.mistake(mode, fmt.Sprintf("%s needs containers, as in throughput: {mode: %[1]s, containers: [{container: orders}]}; allowed without is off", t.Mode))
	}
	for _, n := range list.Items {
		if n.Bad || t.Mode == ThroughputOff {
			continue
		}
		this, f := entry{e.documentReader, n}, f.Containers[len(t.Containers)]
		c := f.ThroughputContainer
		c.ContainerID, c.DatabaseID = f.Container, cmp.Or(f.Database, p.DatabaseID)
		c.Connection = e.connection(n.Get("connection"), f.Connection, p.Connection)
		t.Containers = append(t.Containers, c)
		this.clash(c.Min > c.Max, fmt.Sprintf("min is %d and max %d; allowed is a min up to max", c.Min, c.Max), "min", "max")
		if c.Connection.Endpoint == "" {
			continue // a mistake of its own
		}
		this.clash(c.Connection.UsesIdentity() && c.Connection.ResourceID == "", fmt.Sprintf("the data plane lets no identity read throughput; allowed is a key in setting %s, or the resource id of the account in setting %[1]s__resourceId", c.Connection.Setting), "connection")
		if c.DatabaseID != "" && p.Name != "" && !n.Get("container").Bad {
			this.claimThroughput(e.node, p.Name, t, c)
		}
	}
	return t
}
