package events_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func encode(t *testing.T, e events.ScaleEvent) []byte {
	t.Helper()
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestDecodeReversesEncode(t *testing.T) {
	t.Parallel()
	labelled := ordersEvent()
	labelled.Target = map[string]string{"deployment": "orders"}
	cases := []struct {
		name  string
		event events.ScaleEvent
	}{
		{"full", ordersEvent()},
		{"everything unknown", firstEvent()},
		{"of a group", groupEvent()},
		{"labels", labelled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := encode(t, c.event)
			e, err := events.Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			if again := encode(t, e); !bytes.Equal(again, body) {
				t.Errorf("got  %s\nwant %s", again, body)
			}
		})
	}
}

func TestDecodeIgnoresWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	body := string(encode(t, ordersEvent()))
	body = strings.Replace(body, `{"specversion"`, `{"traceparent":"00-1-2-00","specversion"`, 1)
	body = strings.Replace(body, `"data":{`, `"data":{"laterField":[1],`, 1)
	body = strings.Replace(body, `"source":"feedscale"`, `"source":"feedscale/eu"`, 1)
	e, err := events.Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if e.ID() != "orders-1767225600-000000000042" || e.DesiredReplicas != 5 {
		t.Errorf("got %s with %d replicas", e.ID(), e.DesiredReplicas)
	}
}

func TestTheBodyIsWhatWasReceivedOrElseWhatIsEncoded(t *testing.T) {
	t.Parallel()
	made := encode(t, ordersEvent())
	later := bytes.Replace(made, []byte(`"data":{`), []byte("\"later\": [1.0, \"\\u003c\"],\r\n\"data\":{"), 1)
	buffer := bytes.Clone(later)
	received, err := events.Decode(buffer)
	if err != nil {
		t.Fatal(err)
	}
	clear(buffer) // its owner uses it again
	for _, c := range []struct {
		name  string
		event events.ScaleEvent
		want  []byte
	}{
		{"received, with what is not known here", received, later},
		{"made here", ordersEvent(), made},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body, err := c.event.Body()
			if err != nil || !bytes.Equal(body, c.want) {
				t.Errorf("%v\ngot  %s\nwant %s", err, body, c.want)
			}
		})
	}
	t.Run("made here, and one that no consumer could act upon", func(t *testing.T) {
		t.Parallel()
		if body, err := (events.ScaleEvent{}).Body(); err == nil {
			t.Errorf("got %s", body)
		}
	})
}

// brokenEvent is a change to the text of an event.
type brokenEvent struct {
	name         string
	old, new     string
	want         string // in the decoder's error
	beyondSchema bool
}

// brokenEvents are changes to ordersEvent that make it no scale
// event. Schema and decoder must both refuse them, unless the contradiction is
// one that a JSON Schema cannot express.
var brokenEvents = []brokenEvent{
	{name: "another specversion", old: `"specversion":"1.0"`, new: `"specversion":"0.3"`, want: `specversion is "0.3"`},
	{name: "another type", old: `feedscale.scale.v1`, new: `feedscale.scale.v2`, want: `type is "feedscale.scale.v2"`},
	{name: "another type, whatever its data", old: `feedscale.scale.v1","subject":"orders",`, new: `other.v1",`, want: `type is "other.v1"`},
	{name: "an empty type", old: `"type":"feedscale.scale.v1"`, new: `"type":""`, want: `type is ""`},
	{name: "no specversion", old: `"specversion":"1.0",`, want: "missing specversion"},
	{name: "no id", old: `"id":"orders-1767225600-000000000042",`, want: "missing id"},
	{name: "names match in their exact case only", old: `"id"`, new: `"ID"`, want: "missing id"},
	{name: "empty source", old: `"source":"feedscale"`, new: `"source":""`, want: "source is empty"},
	{name: "a time that is none", old: `2026-01-01T00:00:00Z`, new: `yesterday`, want: "time: must be a time as RFC 3339 has it"},
	{name: "another data content type", old: `"application/json"`, new: `"text/plain"`, want: `datacontenttype is "text/plain"`},
	{name: "data null", old: `"data":{`, new: `"data":null,"x":{`, want: "data must not be null"},
	{name: "data a list", old: `"data":{`, new: `"data":[],"x":{`, want: "data: no JSON object"},
	{name: "several fields are missing", old: `"sequence":42,"desiredReplicas":5,`, want: "missing data.sequence, data.desiredReplicas"},
	{name: "a nullable field is missing", old: `"lag":412,`, want: "missing data.lag"},
	{name: "null where it is never unknown", old: `"metricValue":412`, new: `"metricValue":null`, want: "data.metricValue must not be null"},
	{name: "a string for a number", old: `"desiredReplicas":5`, new: `"desiredReplicas":"5"`, want: "data.desiredReplicas: must be a whole number"},
	{name: "a fraction of a replica", old: `"desiredReplicas":5`, new: `"desiredReplicas":5.5`, want: "data.desiredReplicas: must be a whole number"},
	{name: "negative replicas", old: `"desiredReplicas":5`, new: `"desiredReplicas":-5`, want: "data.desiredReplicas is -5"},
	{name: "sequence zero", old: `"sequence":42`, new: `"sequence":0`, want: "data.sequence is 0"},
	{name: "an unknown direction", old: `"direction":"out"`, new: `"direction":"up"`, want: `data.direction is "up"`},
	{name: "a target that is no map of strings", old: `"target":{}`, new: `"target":{"a":1}`, want: "data.target: must be an object with strings"},
	{name: "a list of reasons is missing", old: `"reasons":[`, new: `"reasons":null,"x":[`, want: "data.reasons must not be null"},
	{name: "epoch and no group", old: `"group":null,`, want: "missing data.group"},
	{name: "group and no epoch", old: `"epoch":1767225600,`, want: "missing data.epoch"},
	{name: "an epoch that is null", old: `"epoch":1767225600`, new: `"epoch":null`, want: "data.epoch must not be null"},
	{name: "a negative epoch", old: `"epoch":1767225600`, new: `"epoch":-1`, want: "data.epoch is -1"},
	{name: "a line end in a name", old: `"processor":"orders"`, new: `"processor":"bad\r\n"`, want: `data.processor is "bad\r\n", allowed are 1 to 63 lower-case letters`},
	{name: "a name that no configuration has", old: `"processor":"orders"`, new: `"processor":"../orders"`, want: `data.processor is "../orders", allowed are`},
	{name: "such a group", old: `"processor":"orders","group":null`, new: `"processor":null,"members":[{"processor":"orders","desiredReplicas":1,"lag":1,"status":"ok"}],"group":"Shop"`, want: `data.group is "Shop", allowed are`},
	{name: "a group without a name", old: `"group":null`, new: `"group":""`, want: "data.processor and data.group must be null or not empty"},
	{name: "neither processor nor group", old: `"processor":"orders"`, new: `"processor":null`, want: "data.processor must not be null"},
	{name: "members of no group", old: `"target":{}`, new: `"target":{},"members":[]`, want: "data.members is given, and data.group is null"},
	{name: "the id of another sequence", old: `"id":"orders-1767225600-000000000042"`, new: `"id":"orders-1767225600-000000000043"`, want: `subject, epoch and sequence make it "orders-1767225600-000000000042"`, beyondSchema: true},
	{name: "the id of another epoch", old: `"id":"orders-1767225600`, new: `"id":"orders-1767225601`, want: `subject, epoch and sequence make it "orders-1767225600-000000000042"`, beyondSchema: true},
	{name: "the subject of another processor", old: `"subject":"orders"`, new: `"subject":"invoices"`, want: `subject is "invoices"`, beyondSchema: true},
}

// brokenGroupEvents are changes to groupEvent, as brokenEvents are.
var brokenGroupEvents = []brokenEvent{
	{name: "processor and group", old: `"processor":null`, new: `"processor":"orders"`, want: "one of them must be null"},
	{name: "a processor without a name", old: `"processor":null`, new: `"processor":""`, want: "data.processor and data.group must be null or not empty"},
	{name: "no processor at all", old: `"processor":null,`, want: "missing data.processor"},
	{name: "no members", old: `"members":[`, new: `"x":[`, want: "missing data.members"},
	{name: "members null", old: `"members":[`, new: `"members":null,"x":[`, want: "data.members must not be null"},
	{name: "a group of nobody", old: `"members":[`, new: `"members":[],"x":[`, want: "data.members is empty"},
	{name: "a member that is none", old: `"members":[`, new: `"members":[null,`, want: "data.members[0]: no JSON object"},
	{name: "a member without a name", old: `{"processor":"invoices",`, new: `{`, want: "missing data.members[1].processor"},
	{name: "a member with a name that no configuration has", old: `"processor":"invoices"`, new: `"processor":"in voices"`, want: `data.members[1].processor is "in voices", allowed are`},
	{name: "a member with an empty name", old: `"processor":"invoices"`, new: `"processor":""`, want: `data.members[1].processor is ""`},
	{name: "a member whose replicas are missing", old: `"desiredReplicas":null,"lag":null`, new: `"lag":null`, want: "missing data.members[1].desiredReplicas"},
	{name: "a member whose lag is missing", old: `"desiredReplicas":null,"lag":null`, new: `"desiredReplicas":null`, want: "missing data.members[1].lag"},
	{name: "a member with negative replicas", old: `"desiredReplicas":null`, new: `"desiredReplicas":-1`, want: "data.members[1].desiredReplicas is -1"},
	{name: "a member with half a replica", old: `"desiredReplicas":null`, new: `"desiredReplicas":0.5`, want: "data.members[1].desiredReplicas: must be a whole number"},
	{name: "a member without a status", old: `"lag":null,"status":"unknown"`, new: `"lag":null,"status":""`, want: "data.members[1].status is empty"},
	{name: "the subject of a member", old: `"subject":"shop-workers"`, new: `"subject":"orders"`, want: `subject is "orders"`, beyondSchema: true},
	{name: "the id of a member", old: `"id":"shop-workers-`, new: `"id":"orders-`, want: `make it "shop-workers-1767225600-000000000042"`, beyondSchema: true},
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for kind, all := range map[string]struct {
		event  events.ScaleEvent
		broken []brokenEvent
	}{"of a processor": {ordersEvent(), brokenEvents}, "of a group": {groupEvent(), brokenGroupEvents}} {
		body := string(encode(t, all.event))
		for _, c := range all.broken {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				t.Parallel()
				broken := strings.Replace(body, c.old, c.new, 1)
				if broken == body {
					t.Fatalf("%s is not in the event", c.old)
				}
				_, err := events.Decode([]byte(broken))
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
			})
		}
	}
}

func TestAnEventOfAnEarlierReleaseIsOfEpochZero(t *testing.T) {
	t.Parallel()
	e, err := events.Decode([]byte(earlierBody))
	if err != nil {
		t.Fatal(err)
	}
	if e.ID() != "orders-000000000042" || e.Subject() != "orders" {
		t.Errorf("got %s of %s", e.ID(), e.Subject())
	}
	if body, err := e.Body(); err != nil || string(body) != earlierBody {
		t.Errorf("got body %s, %v", body, err)
	}
	again, err := events.Decode(encode(t, e))
	if err != nil || again.ID() != e.ID() {
		t.Errorf("encoded anew it is %s, %v", again.ID(), err)
	}
}

func TestDecodeRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing": "", "text": "scale orders to 5", "null": "null", "a list": "[]", "two events": `{} {}`, "cut off": `{"specversion":"1.0"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := events.Decode([]byte(body))
			if err == nil || !strings.Contains(err.Error(), "no JSON object") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	body, err := ordersEvent().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(earlierBody))
	group, err := groupEvent().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(group)
	f.Add([]byte(`{"specversion":"1.0","type":"feedscale.scale.v1"}`))
	f.Add([]byte(`{"":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := events.Decode(body)
		if err != nil {
			return
		}
		if _, err := e.Encode(); err != nil {
			t.Errorf("what was decoded cannot be encoded: %v", err)
		}
	})
}

func TestALongerEventThanAnyIsNone(t *testing.T) {
	t.Parallel()
	body := encode(t, ordersEvent())
	longest := append(body, bytes.Repeat([]byte(" "), events.MaxBody-len(body))...)
	if _, err := events.Decode(longest); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if _, err := events.Decode(append(longest, ' ')); err == nil || !strings.Contains(err.Error(), "longer than 1024 KiB") {
		t.Errorf("a byte more: %v", err)
	}
}
