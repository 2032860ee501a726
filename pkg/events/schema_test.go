package events_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feedscale/feedscale/pkg/events"
)

// validator compiles the schema as a consumer would, with formats asserted.
func validator(t *testing.T) func(body []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(events.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("scale-event.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("scale-event.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(body []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

func TestSchemaAcceptsEveryEncodedEvent(t *testing.T) {
	t.Parallel()
	labelled := ordersEvent()
	labelled.Target = map[string]string{"deployment": "orders"}
	validate := validator(t)
	for name, e := range map[string]events.ScaleEvent{
		"full": ordersEvent(), "everything unknown": firstEvent(), "labelled": labelled, "of a group": groupEvent(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := validate(encode(t, e)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSchemaAcceptsAnEventOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	if err := validator(t)([]byte(earlierBody)); err != nil {
		t.Error(err)
	}
}

func TestEveryFieldIsRequired(t *testing.T) {
	t.Parallel()
	validate := validator(t)
	refused := func(t *testing.T, name string, event map[string]any) {
		t.Helper()
		body, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := events.Decode(body); err == nil || !strings.Contains(err.Error(), "missing "+name) {
			t.Errorf("without %s the decoder says %v", name, err)
		}
		if err := validate(body); err == nil {
			t.Errorf("without %s the schema says nothing", name)
		}
	}
	for kind, e := range map[string]events.ScaleEvent{"of a processor": ordersEvent(), "of a group": groupEvent()} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fields := func() (event, data map[string]any) {
				if err := json.Unmarshal(encode(t, e), &event); err != nil {
					t.Fatal(err)
				}
				return event, event["data"].(map[string]any)
			}
			all, allData := fields()
			for name := range all {
				event, _ := fields()
				delete(event, name)
				refused(t, name, event)
			}
			for name := range allData {
				event, data := fields()
				delete(data, name)
				refused(t, "data."+name, event)
			}
		})
	}
}

func TestSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	t.Parallel()
	validate := validator(t)
	for kind, all := range map[string]struct {
		event  events.ScaleEvent
		broken []brokenEvent
	}{"of a processor": {ordersEvent(), brokenEvents}, "of a group": {groupEvent(), brokenGroupEvents}} {
		body := string(encode(t, all.event))
		for _, c := range all.broken {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				t.Parallel()
				err := validate([]byte(strings.Replace(body, c.old, c.new, 1)))
				if refused := err != nil; refused == c.beyondSchema {
					t.Errorf("refused: %v, want %v", refused, !c.beyondSchema)
				}
			})
		}
	}
}
