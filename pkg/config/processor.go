package config

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Processor is one entry of the processors file (docs/configure.md, The processors file), with
// defaults applied.
type Processor struct {
	Name             string // unique among processors and groups
	Group            string // name of the group that it runs in; "" = none
	Connection       CosmosConnection
	DatabaseID       string
	ContainerID      string
	LeaseConnection  CosmosConnection
	LeaseDatabaseID  string
	LeaseContainerID string
	ProcessorName    string // as given to the SDK; "" is the default of Functions triggers and of Java
	AccountHost      string // host of the endpoint that the application uses for the monitored account, without a port
	StartFrom        changefeed.StartFrom
	LeaseFormat      changefeed.Family // whose leases count; "" = whatever is found
	Schedule         Schedule          // zero = every tick
	IdleSchedule     Schedule          // while the processor is idle; zero = Schedule
	Policy           scaling.Policy
	Throughput       Throughput
	SignalQueue      string            // queue that holds a message for each replica that is wanted; "" = none
	Target           map[string]string // labels that every scale event carries; never nil
}

// processor reads one processor, with the defaults already applied.
func (d *documentReader) processor(n *node) Processor {
	o := d.object(n)
	o.require("name", "a name of its own in every processor, "+events.NameForm)
	o.require("connection", "the name of a setting, as in connection: COSMOS, here or in defaults")
	o.require("databaseId", "the id of the monitored database, here or in defaults")
	o.require("containerId", "the id of the monitored container, here or in defaults")
	p := Processor{
		Name:             o.text("name", "", checkName),
		Group:            o.text("group", "", nil),
		Connection:       d.connection(o, "connection"),
		DatabaseID:       o.text("databaseId", "", checkID),
		ContainerID:      o.text("containerId", "", checkID),
		LeaseContainerID: o.text("leaseContainerId", "leases", checkID),
		ProcessorName:    o.text("processorName", "", checkProcessorName),
		StartFrom:        o.startFrom(),
		LeaseFormat:      choice(o, "leaseFormat", "", changefeed.FamilyDotNet, changefeed.FamilyJava),
		Schedule:         o.cron("schedule", everyTickOr(ParseNCRONTAB)),
		IdleSchedule:     o.cron("idleSchedule", everyTickOr(ParseNCRONTAB)),
		Policy:           d.policy(o),
		SignalQueue:      o.signalQueue(),
		Target:           d.target(o.get("target")),
	}
	p.LeaseDatabaseID = o.text("leaseDatabaseId", p.DatabaseID, checkID)
	p.AccountHost = o.text("accountHost", p.Connection.Host, checkHost)
	p.LeaseConnection = p.Connection
	if o.get("leaseConnection") != nil {
		p.LeaseConnection = d.connection(o, "leaseConnection")
	}
	p.Throughput = d.throughput(o.get("throughput"), p)
	o.close()
	return p
}

// connection reads the connection whose name a field has.
func (d *documentReader) connection(o *object, field string) CosmosConnection {
	name := o.text(field, "", nil)
	if name == "" && o.get(field) == nil || d.partial || !o.sound(field) {
		return CosmosConnection{}
	}
	result, known := d.connections[name]
	if !known {
		result.connection, result.err = ParseCosmosConnection(d.lookup, name)
		d.connections[name] = result
	}
	if result.err != nil {
		o.wrong(field, o.get(field), result.err.Error())
	}
	return result.connection
}

// startFrom reads "now", "beginning" or a time, which is a type of its own in YAML. The year 1 is the
// beginning, as it is for the SDKs.
func (o *object) startFrom() changefeed.StartFrom {
	const allowed = "allowed are now, beginning or an RFC 3339 time from 1970 on, such as 2026-01-01T00:00:00Z"
	n := o.get("startFrom")
	if n == nil {
		return changefeed.StartFrom{}
	}
	if tag := n.tag(); tag != "!!str" && tag != "!!timestamp" {
		o.wrong("startFrom", n, n.is()+"; "+allowed)
		return changefeed.StartFrom{}
	}
	switch n.source.Value {
	case "now":
		return changefeed.StartFrom{}
	case "beginning":
		return changefeed.StartFrom{Beginning: true}
	}
	at, err := time.Parse(time.RFC3339, n.source.Value)
	from := changefeed.StartAt(at)
	if err != nil || !from.Beginning && from.Time.Year() < 1970 {
		o.wrong("startFrom", n, n.is()+"; "+allowed)
		return changefeed.StartFrom{}
	}
	return from
}

// cron reads a cron expression; the zero Schedule where the field is absent or wrong.
func (o *object) cron(name string, parse func(string) (Schedule, error)) (schedule Schedule) {
	o.text(name, "", func(text string) (err error) {
		schedule, err = parse(text)
		return err
	})
	return schedule
}

// everyTickOr returns a parser that also accepts an empty expression, as the zero Schedule.
func everyTickOr(parse func(string) (Schedule, error)) func(string) (Schedule, error) {
	return func(text string) (Schedule, error) {
		if text == "" {
			return Schedule{}, nil
		}
		return parse(text)
	}
}

// target reads the labels. They are bounded, since every scale event carries them.
func (d *documentReader) target(n *node) map[string]string {
	const maxLabels, maxLabelName, maxLabelValue = 64, 128, 1024
	o := d.object(n)
	labels := map[string]string{}
	if o.node == nil {
		return labels
	}
	for _, m := range o.node.members {
		if m.name == "" || utf8.RuneCountInString(m.name) > maxLabelName {
			o.wrong(m.name, m.value, fmt.Sprintf("has a bad name; allowed are labels whose names have 1 to %d characters", maxLabelName))
			continue
		}
		if o.get(m.name) == nil {
			continue // empty: removes an inherited label
		}
		labels[m.name] = o.text(m.name, "", func(text string) error {
			if utf8.RuneCountInString(text) > maxLabelValue {
				return fmt.Errorf("is too long; allowed are up to %d characters", maxLabelValue)
			}
			return nil
		})
	}
	if len(labels) > maxLabels {
		o.mistake(n, fmt.Sprintf("has %d labels; allowed are up to %d", len(labels), maxLabels))
	}
	return labels
}

func checkName(text string) error {
	if !events.IsName(text) {
		return fmt.Errorf("%s is not a name; allowed are %s", yamltree.Quote(text), events.NameForm)
	}
	return nil
}

// checkID applies the rules of Cosmos DB for the ids of databases and containers.
func checkID(text string) error {
	if text == "" || strings.HasSuffix(text, " ") {
		return fmt.Errorf("%s is not an id; allowed are 1 to 255 characters without / \\ # ? and without a space at the end", yamltree.Quote(text))
	}
	return checkProcessorName(text)
}

// checkProcessorName applies the rules of Cosmos DB for the id of a document, since lease ids begin
// with the name of their processor.
func checkProcessorName(text string) error {
	if utf8.RuneCountInString(text) > 255 || strings.ContainsAny(text, `/\#?`) {
		return fmt.Errorf("%s cannot stand in an id; allowed are up to 255 characters without / \\ # ?", yamltree.Quote(text))
	}
	return nil
}

func checkHost(text string) error {
	if !wellNamed(text, 253, "._-") {
		return fmt.Errorf("%s is not a host name; allowed is a name such as shop.documents.azure.com, without https:// and without a port", yamltree.Quote(text))
	}
	return nil
}
