package config_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/feedscale/feedscale/pkg/config"
)

// signalFile is a processors file whose lines are those given, below the defaults of all.
func signalFile(lines ...string) string {
	return "defaults: {connection: COSMOS, databaseId: shop, containerId: orders}\n" + strings.Join(lines, "\n") + "\n"
}

func TestASignalQueueHoldsOneCount(t *testing.T) {
	t.Parallel()
	const (
		orders = "- {name: orders, processorName: a, signalQueue: orders-replicas}"
		bus    = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=c2VjcmV0"
	)
	for _, c := range []struct {
		rule, events, bus string
		file              string
		want              string // in the error; "" = none
	}{
		{"of a processor and of a group", "servicebus:BUS/events", bus,
			signalFile("groups: [{name: workers, signalQueue: worker-replicas}]", "processors:", orders, "- {name: payments, processorName: b, group: workers}"), ""},
		{"none where the field is empty", "stdout:", bus,
			signalFile("processors:", "- {name: orders, signalQueue: }", "- {name: payments, processorName: b, signalQueue: ''}"), ""},
		{"is in the namespace of the events", "stdout:", bus, signalFile("processors:", orders),
			"processors.yaml:3: processors[0] (orders).signalQueue: needs a Service Bus namespace, and FEEDSCALE_EVENTS names none; allowed is a signalQueue if it is servicebus:SETTING/QUEUE"},
		{"is not the queue of the events", "servicebus:BUS/Orders-Replicas", bus, signalFile("processors:", orders),
			"processors.yaml:3: processors[0] (orders).signalQueue: orders-replicas is the queue of the scale events (FEEDSCALE_EVENTS); allowed is another one, since its messages are counted"},
		{"needs more than a key of the events queue", "servicebus:BUS/events", bus + ";EntityPath=events", signalFile("processors:", orders),
			`processors.yaml:3: processors[0] (orders).signalQueue: needs a connection string of the namespace, and that in setting BUS is for the entity "events" alone (EntityPath)`},
		{"is not shared, in any spelling", "servicebus:BUS/events", bus,
			signalFile("processors:", orders, "- {name: payments, processorName: b, signalQueue: ORDERS-replicas}"),
			"processors.yaml:4: processors[1] (payments).signalQueue: ORDERS-replicas is the signal queue of another entry, on line 3; allowed is a queue of its own, since its messages are counted"},
		{"is not shared with a group", "servicebus:BUS/events", bus,
			signalFile("groups: [{name: workers, signalQueue: orders-replicas}]", "processors:", orders, "- {name: payments, processorName: b, group: workers}"),
			"processors.yaml:4: processors[0] (orders).signalQueue: orders-replicas is the signal queue of another entry, on line 2"},
		{"is the group's in a member of one", "servicebus:BUS/events", bus,
			signalFile("groups: [{name: workers}]", "processors:", "- {name: orders, group: workers, signalQueue: orders-replicas}"),
			"processors.yaml:4: processors[0] (orders).signalQueue: has no effect in a member of a group; allowed is a signalQueue of the group workers"},
		{"has no default", "servicebus:BUS/events", bus,
			"defaults: {connection: COSMOS, databaseId: shop, containerId: orders, signalQueue: all}\nprocessors: [{name: orders}]",
			"processors.yaml:1: defaults.signalQueue: is an unknown field; allowed are accountHost, "},
		{"is a name", "servicebus:BUS/events", bus, signalFile("processors:", "- {name: orders, signalQueue: 'servicebus:BUS/orders'}"),
			`processors.yaml:3: processors[0] (orders).signalQueue: is the text "servicebus:BUS/orders"; allowed are up to 260 letters`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"processors.yaml": {Data: []byte(c.file)}}
			got, err := config.Read(config.Input{Environ: []string{cosmosSetting, "FEEDSCALE_EVENTS=" + c.events, "BUS=" + c.bus}, ReadFile: files.ReadFile})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0):
				t.Errorf("got  %v\nwant %s", err, c.want)
			case c.want == "" && len(got.Groups) > 0 && (got.Processors[0].SignalQueue != "orders-replicas" || got.Groups[0].SignalQueue != "worker-replicas"):
				t.Errorf("got %q and %q", got.Processors[0].SignalQueue, got.Groups[0].SignalQueue)
			}
		})
	}
}
