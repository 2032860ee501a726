package config

import (
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// signalQueue reads the name of a signal queue (docs/act.md, Signal queue).
func (o *object) signalQueue() string {
	return o.text("signalQueue", "", func(text string) error {
		if text != "" && !wellNamed(text, 260, "._-/") {
			return fmt.Errorf("%s is not the name of a queue; allowed are up to 260 letters, digits, '.', '-', '_' and '/', a letter or digit first and last", yamltree.Quote(text))
		}
		return nil
	})
}

// signalQueues are those of a document. Each holds the count of one processor or group: two of one queue
// would take each other's messages.
type signalQueues struct {
	reader
	named []signalQueue
}

type signalQueue struct {
	name string
	at   *node
}

// add adds one, and reports a queue that another entry has. Service Bus does not distinguish cases.
func (q *signalQueues) add(name string, at *node) {
	if name == "" {
		return
	}
	for _, first := range q.named {
		if strings.EqualFold(first.name, name) {
			q.mistake(at, fmt.Sprintf("%s is the signal queue of another entry, on line %d; allowed is a queue of its own, since its messages are counted", yamltree.QuoteName(name), first.at.line))
			return
		}
	}
	q.named = append(q.named, signalQueue{name, at})
}

// checkSignalQueue reports a signal queue of a member of a group, whose own decision nothing follows.
func (d *documentReader) checkSignalQueue(p Processor, whole *node) {
	if p.SignalQueue != "" && p.Group != "" {
		d.mistake(whole.member("signalQueue"), fmt.Sprintf("has no effect in a member of a group; allowed is a signalQueue of the group %s", yamltree.QuoteName(p.Group)))
	}
}

// check reports signal queues that cannot be used beside the events: they are in the same namespace.
func (q *signalQueues) check(events Events) {
	for _, signal := range q.named {
		switch bus := events.ServiceBus; {
		case bus.Setting == "":
			q.mistake(signal.at, "needs a Service Bus namespace, and FEEDSCALE_EVENTS names none; allowed is a signalQueue where it is servicebus:SETTING/QUEUE")
		case strings.EqualFold(signal.name, events.Queue):
			q.mistake(signal.at, yamltree.QuoteName(signal.name)+" is the queue of the scale events (FEEDSCALE_EVENTS); allowed is another one, since its messages are counted")
		case bus.Entity != "":
			q.mistake(signal.at, fmt.Sprintf("needs a connection string of the namespace, and that in setting %s is for the entity %s alone (EntityPath)", bus.Setting, yamltree.Quote(bus.Entity)))
		}
	}
}
