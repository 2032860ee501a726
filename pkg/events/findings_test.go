package events_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestAnEventMaySayWhatWasFound(t *testing.T) {
	t.Parallel()
	e := ordersEvent()
	e.Findings = []events.Finding{{Code: "stalled", Severity: "critical", Sentence: "partition 3 has not moved", Remedy: "look at the change"}}
	body := encode(t, e)
	if err := validator(t)(body); err != nil {
		t.Error(err)
	}
	got, err := events.Decode(body)
	if err != nil || !reflect.DeepEqual(got.Findings, e.Findings) {
		t.Errorf("got %+v, %v", got.Findings, err)
	}
	if err := validator(t)([]byte(strings.Replace(string(body), `"code":"stalled",`, "", 1))); err == nil {
		t.Error("the schema says nothing of a finding without a code")
	}
	if without := string(encode(t, ordersEvent())); strings.Contains(without, "findings") {
		t.Errorf("without any: %s", without)
	}
}
