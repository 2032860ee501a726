package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamlschema"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// minimalDocument is the example of a processors file in mistakes.
const minimalDocument = "processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]"

// Document is what a processors document says.
type Document struct {
	Processors []Processor // in the order of the document, at least one
	Groups     []Group     // in the order of the document
}

// documentReader reads a document of any kind: what the schema allows, and the rules that it cannot
// express (rules.go).
type documentReader struct {
	form        *yamlschema.Form
	root        *yamltree.Node
	mistakes    *Mistakes
	bad         map[*yamltree.Node]bool // values with a mistake: they are read as absent
	lookup      func(string) (string, bool)
	connections map[string]cosmosResult // by the name of the setting: thousands of processors may share one
	claims      map[string]claim
	signals     []signalQueue
}

type cosmosResult struct {
	connection CosmosConnection
	err        error
}

// newDocumentReader parses a document and validates it by its schema. It returns nil, and adds a mistake, if
// the document cannot be read at all. entries is the list that each document has.
func newDocumentReader(file string, text []byte, f *yamlschema.Form, entries string, mistakes *Mistakes) *documentReader {
	documents, wrong := yamltree.Parse(file, text)
	if len(documents) > 0 {
		if other := foreignDocument(documents[0]); other != "" {
			mistakes.Add(Mistake{File: file, Line: documents[0].Line, Column: documents[0].Column, Text: other})
			return nil
		}
	}
	*mistakes = append(*mistakes, wrong...)
	if len(documents) == 0 {
		if len(wrong) == 0 {
			mistakes.Add(Mistake{File: file, Line: 1, Column: 1, Field: entries, Text: "is empty; " + yamlschema.Allowed(f.At(entries))})
		}
		return nil
	}
	if len(documents) > 1 {
		mistakes.Add(Mistake{File: file, Line: documents[1].Line, Column: documents[1].Column, Text: "a second document begins here; allowed is one document, with all " + entries + " in its list"})
	}
	wrong, bad := f.Validate(documents[0])
	*mistakes = append(*mistakes, wrong...)
	d := &documentReader{
		form: f, root: documents[0], mistakes: mistakes, bad: bad,
		connections: map[string]cosmosResult{}, claims: map[string]claim{},
	}
	d.checkValues(string(text), d.root)
	return d
}

// entry is an item of a document's list, on top of the defaults.
type entry struct {
	*documentReader
	node     *yamltree.Node
	defaults *yamltree.Node // an absent one if the document has none
}

// entries returns the items of a list that are objects, with the defaults if they inherit them.
func (d *documentReader) entries(list string, inherit bool) []entry {
	defaults := d.root.Get("there are none")
	if inherit {
		defaults = d.root.Get("defaults")
	}
	var all []entry
	for _, item := range d.root.Get(list).Items {
		if item.IsObject() {
			all = append(all, entry{d, item, defaults})
		}
	}
	return all
}

// fields reads an entry of a list, with the defaults of the document and of the schema. It reads a field
// with a mistake as null, and leaves out an item with one.
func fields[T any](e entry, list string) T {
	skip := func(n *yamltree.Node) bool { return e.bad[n] }
	value := e.node.Value(skip)
	if e.defaults.IsObject() {
		value = yamlschema.Overlay(e.defaults.Value(skip), value)
	}
	decoded, err := yamlschema.Decode[T](e.form.At(list, "0"), value)
	if err != nil {
		e.mistake(e.node, "cannot be read ("+err.Error()+"); allowed is what the schema allows")
	}
	return decoded
}

// load reads a document and adds its mistakes. It also returns the signal queues, for checkSignals.
func load(file string, text []byte, lookup func(string) (string, bool), mistakes *Mistakes) (read Document, signals []signalQueue) {
	d := newDocumentReader(file, text, processorsForm(), "processors", mistakes)
	if d == nil {
		return Document{}, nil
	}
	d.lookup = lookup
	for _, e := range d.entries("groups", false) {
		f := fields[groupFields](e, "groups")
		g := Group{Name: f.Name, SignalQueue: f.SignalQueue, Target: f.Target, Policy: scaling.GroupPolicy{MinReplicas: f.MinReplicaCount, MaxReplicas: f.MaxReplicaCount}}
		e.checkBounds(f.MinReplicaCount, f.MaxReplicaCount)
		e.claimName("group", f.Name)
		e.claimTarget(g.Name, g.Target)
		e.claimSignalQueue(g.SignalQueue)
		read.Groups = append(read.Groups, g)
	}
	for _, e := range d.entries("processors", true) {
		p := e.processor()
		read.Processors = append(read.Processors, p)
		e.claimName("processor", p.Name)
		e.checkGroup(p, read.Groups)
		e.claimLeases(p)
		if p.Group == "" {
			e.claimTarget(p.Name, p.Target) // else that of the group counts
		}
		e.checkShared(p)
		e.claimSignalQueue(p.SignalQueue)
	}
	d.checkMembers(read)
	noteNamesInUse(read.Processors)
	return read, d.signals
}

// noteNamesInUse fills in NamesInUse.
func noteNamesInUse(processors []Processor) {
	of := func(p Processor) [5]string {
		return [5]string{p.Connection.Endpoint, p.DatabaseID, p.ContainerID, p.LeaseConnection.Endpoint, p.LeaseDatabaseID + "/" + p.LeaseContainerID}
	}
	names := map[[5]string][]string{}
	for _, p := range processors {
		names[of(p)] = append(names[of(p)], p.ProcessorName)
	}
	for i, p := range processors {
		processors[i].NamesInUse = names[of(p)]
	}
}

// processor reads one processor.
func (e entry) processor() Processor {
	f := fields[processorFields](e, "processors")
	p := Processor{
		Name: f.Name, Group: f.Group, DatabaseID: f.DatabaseID, ContainerID: f.ContainerID,
		LeaseDatabaseID: f.LeaseDatabaseID, LeaseContainerID: f.LeaseContainerID, ProcessorName: f.ProcessorName,
		AccountHost: f.AccountHost, LeaseFormat: f.LeaseFormat, Policy: f.policy(), SignalQueue: f.SignalQueue, Target: f.Target,
		Connection: e.connection(e.at("connection"), f.Connection),
	}
	p.StartFrom, _ = parseStartFrom(f.StartFrom) // the schema checked these
	p.Schedule, _ = parseSchedule(f.Schedule)
	p.IdleSchedule, _ = parseSchedule(f.IdleSchedule)
	if p.LeaseDatabaseID == "" {
		p.LeaseDatabaseID = p.DatabaseID
	}
	if p.AccountHost == "" {
		p.AccountHost = p.Connection.Host
	}
	p.LeaseConnection = p.Connection
	if f.LeaseConnection != "" {
		p.LeaseConnection = e.connection(e.at("leaseConnection"), f.LeaseConnection)
	}
	p.Throughput = e.throughput(f.Throughput, p)
	e.checkPolicy(f.policyFields)
	return p
}

// connection reads the connection that a setting holds.
func (e entry) connection(at *yamltree.Node, name string) CosmosConnection {
	if name == "" || e.bad[at] {
		return CosmosConnection{}
	}
	result, known := e.connections[name]
	if !known {
		result.connection, result.err = ParseCosmosConnection(e.lookup, name)
		e.connections[name] = result
	}
	if result.err != nil {
		e.mistake(at, result.err.Error())
		return CosmosConnection{}
	}
	return result.connection
}

// throughput reads the containers of a processor. A container without a connection or a database has that
// of the processor.
func (e entry) throughput(f throughputFields, p Processor) Throughput {
	t := Throughput{Mode: f.Mode, ScaleDownAfter: time.Duration(f.ScaleDownAfter)}
	items := e.at("throughput.containers").Items
	switch mode := e.at("throughput.mode"); {
	case e.bad[mode] || e.bad[e.at("throughput.containers")]:
	case len(items) > 0 && !mode.Present():
		e.mistake(e.at("throughput.containers"), "mode is missing; "+yamlschema.Allowed(e.form.At("processors", "0", "throughput", "mode")))
	case len(items) == 0 && t.Mode != ThroughputOff:
		e.mistake(mode, fmt.Sprintf("%s needs containers; %s", t.Mode, yamlschema.Allowed(e.form.At("processors", "0", "throughput", "containers", "0"))))
	}
	items = slices.DeleteFunc(slices.Clone(items), func(n *yamltree.Node) bool { return e.bad[n] })
	named := map[ThroughputContainer]bool{}
	for i, n := range items {
		this := entry{e.documentReader, n, e.defaults.Get("none")}
		c := f.Containers[i]
		made := ThroughputContainer{
			Connection: p.Connection, ContainerID: c.Container, DatabaseID: cmp.Or(c.Database, p.DatabaseID),
			Min: c.Min, Max: c.Max, RUPerReplica: c.RUPerReplica,
		}
		if c.Connection != "" {
			made.Connection = e.connection(n.Get("connection"), c.Connection)
		}
		this.clash(c.Min > c.Max, fmt.Sprintf("min is %d and max %d; allowed is a min up to max", c.Min, c.Max), "min", "max")
		account := made.Connection
		needsID := t.Mode != ThroughputOff && account.Endpoint != "" && account.UsesIdentity() && account.ResourceID == ""
		this.clash(needsID, fmt.Sprintf("the data plane lets no identity read throughput; allowed is a key in setting %s, or the resource id of the account in setting %[1]s__resourceId", account.Setting), "connection")
		if !e.bad[n.Get("container")] && !e.bad[n.Get("database")] {
			key := ThroughputContainer{Connection: CosmosConnection{Endpoint: account.Endpoint}, DatabaseID: made.DatabaseID, ContainerID: made.ContainerID}
			this.clash(named[key], "names the same container as another entry; allowed is one entry for each container")
			named[key] = true
		}
		t.Containers = append(t.Containers, made)
	}
	if t.Mode == ThroughputOff {
		t.Containers = nil
	}
	return t
}
