package config

import (
	"fmt"
	"regexp"
	"time"
)

// ThroughputMode says what becomes of the throughput that a processor's replicas need.
type ThroughputMode string

// The modes.
const (
	ThroughputOff       ThroughputMode = "off"
	ThroughputRecommend ThroughputMode = "recommend" // shown and published
	ThroughputApply     ThroughputMode = "apply"     // provisioned
)

// Throughput is the field of a processor that names containers whose request units follow its replicas
// (docs/throughput.md).
type Throughput struct {
	Mode           ThroughputMode
	Containers     []ThroughputContainer // none where the mode is off
	ScaleDownAfter time.Duration
}

// ThroughputContainer is one container, or a database whose containers share its throughput.
type ThroughputContainer struct {
	Connection   CosmosConnection
	DatabaseID   string
	ContainerID  string // "" = the database itself
	Min          int    // request units a second; 0 = what is found before the first change
	Max          int
	RUPerReplica int // request units a second that one replica uses; 0 = what is measured
}

const (
	leastThroughput   = 400 // https://learn.microsoft.com/azure/cosmos-db/concepts-limits
	mostThroughput    = 1_000_000
	throughputStep    = 100
	defaultThroughput = 10_000 // of max: what one physical partition serves
)

// minimalThroughput is the example of throughput in mistakes.
const minimalThroughput = "throughput: {mode: recommend, containers: [{container: orders, ruPerReplica: 400}]}"

// throughput reads the field of that name of a processor, whose connection and database are those of
// containers that name none.
func (d *documentReader) throughput(n *node, p Processor) Throughput {
	o := d.object(n)
	t := Throughput{
		Mode:           choice(o, "mode", ThroughputOff, ThroughputOff, ThroughputRecommend, ThroughputApply),
		ScaleDownAfter: o.duration("scaleDownAfter", time.Hour, 0),
	}
	items := o.list("containers")
	taken := map[ThroughputContainer]bool{}
	for _, item := range items {
		c := d.throughputContainer(item, p, t.Mode)
		key := ThroughputContainer{Connection: CosmosConnection{Endpoint: c.Connection.Endpoint}, DatabaseID: c.DatabaseID, ContainerID: c.ContainerID}
		if key.DatabaseID != "" && taken[key] {
			d.mistake(item, "names the same container as another entry; allowed is one entry for each container")
		}
		taken[key] = true
		t.Containers = append(t.Containers, c)
	}
	switch {
	case !o.sound("mode", "containers"):
	case len(items) > 0 && o.get("mode") == nil:
		o.clash("mode is missing; allowed are off, recommend or apply, as in "+minimalThroughput, "containers")
	case len(items) == 0 && t.Mode != ThroughputOff:
		o.clash(fmt.Sprintf("%s needs containers; allowed is at least one, as in %s", t.Mode, minimalThroughput), "mode")
	}
	o.close()
	if t.Mode == ThroughputOff {
		t.Containers = nil
	}
	return t
}

func (d *documentReader) throughputContainer(n *node, p Processor, mode ThroughputMode) ThroughputContainer {
	o := d.item(n, "an object, as in "+minimalThroughput)
	c := ThroughputContainer{
		Connection:   p.Connection,
		ContainerID:  o.text("container", "", checkID),
		DatabaseID:   o.text("database", p.DatabaseID, checkID),
		Min:          o.throughput("min", 0),
		Max:          o.throughput("max", defaultThroughput),
		RUPerReplica: integer(o, "ruPerReplica", 0, 1, mostThroughput),
	}
	field := "connection"
	if o.get(field) != nil {
		c.Connection = d.connection(o, field)
	}
	if o.node != nil && o.get("container") == nil && o.get("database") == nil {
		o.mistake(n, "names neither container nor database; allowed is a container, or a database alone, whose containers share its throughput")
		o.bad = append(o.bad, "container")
	}
	if !o.sound("container", "database") {
		c.DatabaseID = "" // it names nothing that could be compared
	}
	if o.sound("min", "max") && c.Min > c.Max {
		o.clash(fmt.Sprintf("min is %d and max %d; allowed is a min up to max", c.Min, c.Max), "min", "max")
	}
	if mode != ThroughputOff && o.sound(field) && c.Connection.Endpoint != "" && c.Connection.UsesIdentity() && c.Connection.ResourceID == "" {
		o.clash(fmt.Sprintf("the data plane lets no identity read throughput; allowed is a key in setting %s, or the resource id of the account in setting %[1]s__resourceId", c.Connection.Setting), field)
	}
	o.close()
	return c
}

// throughput reads request units a second, in the steps of the service.
func (o *object) throughput(name string, fallback int) int {
	value := integer(o, name, fallback, leastThroughput, mostThroughput)
	if n := o.get(name); n != nil && value%throughputStep != 0 {
		o.wrong(name, n, fmt.Sprintf("%d is no throughput; allowed are multiples of %d from %d to %d", value, throughputStep, leastThroughput, mostThroughput))
		return fallback
	}
	return value
}

// accountID is the form of an account's resource id.
var accountID = regexp.MustCompile(`(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]+/providers/Microsoft\.DocumentDB/databaseAccounts/[^/]+$`)

// sharedContainers finds processors that name the same container, whose needs add up, but differ in how
// it is to be provisioned.
type sharedContainers struct {
	reader
	first map[string]sharedContainer
}

type sharedContainer struct {
	processor string
	line      int
	mode      ThroughputMode
	min, max  int
	after     time.Duration
}

func (s *sharedContainers) add(p Processor, at *node) {
	for _, c := range p.Throughput.Containers {
		if c.Connection.Endpoint == "" || c.DatabaseID == "" || p.Name == "" {
			continue // a mistake of its own
		}
		key := c.Connection.Endpoint + "|" + c.DatabaseID + "|" + c.ContainerID
		this := sharedContainer{p.Name, at.line, p.Throughput.Mode, c.Min, c.Max, p.Throughput.ScaleDownAfter}
		first, known := s.first[key]
		if !known {
			s.first[key] = this
			continue
		}
		if first.mode != this.mode || first.min != this.min || first.max != this.max || first.after != this.after {
			name := c.DatabaseID
			if c.ContainerID != "" {
				name += "/" + c.ContainerID
			}
			s.mistake(at, fmt.Sprintf("its throughput of %s has another mode, min, max or scaleDownAfter than that of %s, on line %d; allowed is the same in both, since their needs add up", name, first.processor, first.line))
		}
	}
}
