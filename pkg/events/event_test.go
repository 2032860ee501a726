package events_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

func ptr[T any](v T) *T { return &v }

// ordersEvent is an event in which everything is known.
func ordersEvent() events.ScaleEvent {
	return events.ScaleEvent{
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Data: events.Data{
			Processor: "orders", Epoch: 1767225600, Sequence: 42, DesiredReplicas: 5, PreviousReplicas: ptr(3), Active: true, Direction: "out",
			MetricValue: 412, Lag: ptr(int64(412)), ChangeAgeSeconds: ptr(int64(34)), PartitionCount: ptr(8), PartitionsWithLag: ptr(5),
			Complete: true, Status: "lagging", Reasons: []events.Reason{{Step: "threshold", Replicas: 5, Why: "lag 412 at 100 per replica"}},
		},
	}
}

// groupEvent is an event of a group, one of whose members is known and the other not.
func groupEvent() events.ScaleEvent {
	e := ordersEvent()
	e.Processor, e.Group = "", "shop-workers"
	e.Members = []events.Member{
		{Processor: "orders", DesiredReplicas: ptr(5), Lag: ptr(int64(412)), Status: "lagging"},
		{Processor: "invoices", Status: "unknown"},
	}
	return e
}

// earlierBody is an event as releases encoded it that had no epochs and no groups.
const earlierBody = `{"specversion":"1.0","id":"orders-000000000042","source":"feedscale","type":"feedscale.scale.v1","subject":"orders",` +
	`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",` +
	`"data":{"processor":"orders","sequence":42,"desiredReplicas":5,"previousReplicas":3,"active":true,"direction":"out",` +
	`"metricValue":412,"lag":412,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":true,` +
	`"status":"lagging","reasons":[{"step":"threshold","replicas":5,"why":"lag 412 at 100 per replica"}],"target":{}}}`

// firstEvent is one in which everything that may be unknown is.
func firstEvent() events.ScaleEvent {
	return events.ScaleEvent{
		Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Data: events.Data{Processor: "a", Sequence: 1, Direction: "none", Status: "unknown"},
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		event events.ScaleEvent
		want  string
	}{
		{
			"every field, in the order of the contract", ordersEvent(),
			`{"specversion":"1.0","id":"orders-1767225600-000000000042","source":"feedscale","type":"feedscale.scale.v1","subject":"orders",` +
				`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",` +
				`"data":{"processor":"orders","group":null,"epoch":1767225600,"sequence":42,"desiredReplicas":5,"previousReplicas":3,"active":true,"direction":"out",` +
				`"metricValue":412,"lag":412,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":true,` +
				`"status":"lagging","reasons":[{"step":"threshold","replicas":5,"why":"lag 412 at 100 per replica"}],"target":{}}}`,
		},
		{
			"a group in place of a processor, with its members", groupEvent(),
			`{"specversion":"1.0","id":"shop-workers-1767225600-000000000042","source":"feedscale","type":"feedscale.scale.v1","subject":"shop-workers",` +
				`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",` +
				`"data":{"processor":null,"group":"shop-workers","epoch":1767225600,"sequence":42,"desiredReplicas":5,"previousReplicas":3,"active":true,"direction":"out",` +
				`"metricValue":412,"lag":412,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":true,` +
				`"status":"lagging","reasons":[{"step":"threshold","replicas":5,"why":"lag 412 at 100 per replica"}],"target":{},` +
				`"members":[{"processor":"orders","desiredReplicas":5,"lag":412,"status":"lagging"},` +
				`{"processor":"invoices","desiredReplicas":null,"lag":null,"status":"unknown"}]}}`,
		},
		{
			"what is unknown is null, and lists are never null", firstEvent(),
			`{"specversion":"1.0","id":"a-000000000001","source":"feedscale","type":"feedscale.scale.v1","subject":"a",` +
				`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",` +
				`"data":{"processor":"a","group":null,"epoch":0,"sequence":1,"desiredReplicas":0,"previousReplicas":null,"active":false,"direction":"none",` +
				`"metricValue":0,"lag":null,"changeAgeSeconds":null,"partitionCount":null,"partitionsWithLag":null,"complete":false,` +
				`"status":"unknown","reasons":[],"target":{}}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.event.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestEncodedText(t *testing.T) {
	t.Parallel()
	e := ordersEvent()
	e.Time = time.Date(2026, 7, 1, 2, 30, 0, 0, time.FixedZone("CEST", 2*60*60))
	e.Reasons[0].Why = "age > 5m\n& rising"
	e.Target = map[string]string{"namespace": "shop", "deployment": "orders", "kind": "Deployment"}
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, want string }{
		{"time is UTC", `"time":"2026-07-01T00:30:00Z"`},
		{"HTML is not escaped", `age > 5m\n& rising`},
		{"target keys are sorted", `"target":{"deployment":"orders","kind":"Deployment","namespace":"shop"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(string(body), c.want) {
				t.Errorf("%s is not in %s", c.want, body)
			}
		})
	}
	if strings.Contains(string(body), "\n") {
		t.Errorf("not one line: %q", body)
	}
}

func TestEncodeRefusesWhatNoConsumerCouldActUpon(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		change func(*events.ScaleEvent)
		want   string
	}{
		{"no processor", func(e *events.ScaleEvent) { e.Processor = "" }, `data.processor is ""`},
		{"processor and group", func(e *events.ScaleEvent) { *e = groupEvent(); e.Processor = "orders" }, "one of them must be null"},
		{"a group of nobody", func(e *events.ScaleEvent) { *e = groupEvent(); e.Members = nil }, "data.members is empty"},
		{"members of no group", func(e *events.ScaleEvent) { e.Members = groupEvent().Members }, "data.members is given, and data.group is null"},
		{"a member without a name", func(e *events.ScaleEvent) { *e = groupEvent(); e.Members[1].Processor = "" }, `data.members[1].processor is ""`},
		{"a member with negative replicas", func(e *events.ScaleEvent) { *e = groupEvent(); e.Members[0].DesiredReplicas = ptr(-1) }, "data.members[0].desiredReplicas is -1"},
		{"a member without a status", func(e *events.ScaleEvent) { *e = groupEvent(); e.Members[1].Status = "" }, "data.members[1].status is empty"},
		{"an epoch before 1970", func(e *events.ScaleEvent) { e.Epoch = -1 }, "data.epoch is -1"},
		{"an epoch of eleven digits", func(e *events.ScaleEvent) { e.Epoch = events.MaxEpoch + 1 }, "data.epoch is 10000000000"},
		{"no time", func(e *events.ScaleEvent) { e.Time = time.Time{} }, "time is missing"},
		{"sequence zero", func(e *events.ScaleEvent) { e.Sequence = 0 }, "data.sequence is 0"},
		{"a sequence of thirteen digits", func(e *events.ScaleEvent) { e.Sequence = events.MaxSequence + 1 }, "data.sequence is 1000000000000"},
		{"negative replicas", func(e *events.ScaleEvent) { e.DesiredReplicas = -1 }, "data.desiredReplicas is -1"},
		{"negative previous replicas", func(e *events.ScaleEvent) { e.PreviousReplicas = ptr(-1) }, "data.previousReplicas is -1"},
		{"an unknown direction", func(e *events.ScaleEvent) { e.Direction = "up" }, `data.direction is "up"`},
		{"a negative metric", func(e *events.ScaleEvent) { e.MetricValue = -1 }, "data.metricValue is -1"},
		{"no status", func(e *events.ScaleEvent) { e.Status = "" }, "data.status is empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := ordersEvent()
			c.change(&e)
			_, err := e.Encode()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestIDsSortAsTheirEventsDo(t *testing.T) {
	t.Parallel()
	id := func(epoch, sequence int64) string {
		return events.Data{Processor: "orders", Epoch: epoch, Sequence: sequence}.ID()
	}
	sorted := []string{id(0, 42), id(1, 1), id(1, 2), id(1, 10), id(999_999_999, 1), id(1_767_225_600, 9), id(1_767_225_600, 10), id(1_767_225_601, 1), id(events.MaxEpoch, events.MaxSequence)}
	if !slices.IsSorted(sorted) {
		t.Errorf("not sorted: %q", sorted)
	}
	if got, want := id(0, 42), "orders-000000000042"; got != want {
		t.Errorf("without an epoch got %q, want %q as before there were any", got, want)
	}
}
