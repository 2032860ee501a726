package actions_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/events"
)

// asPublished is an event as in the outbox of a processor, with values that JSON can write in more
// than one way.
const asPublished = `{"specversion":"1.0","id":"orders-000000000042","source":"feedscale/eu","type":"feedscale.scale.v1","subject":"orders",` +
	`"time":"2026-01-01T00:00:00.0421Z","datacontenttype":"application/json",` +
	`"data":{"processor":"orders","sequence":42,"desiredReplicas":5,"previousReplicas":null,"active":true,"direction":"out",` +
	`"metricValue":9007199254740993,"lag":null,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":false,` +
	`"status":"lagging","reasons":[{"step":"threshold","replicas":5,"why":"lag 412 > 100 & <unknown> für \"orders\""}],"target":{"a":"1","z":""}}}`

func TestALineIsTheEventAsItWasPublishedByteForByte(t *testing.T) {
	t.Parallel()
	e, err := events.Decode([]byte(asPublished))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	action := actions.NewStdout(&out)
	for range 2 {
		changed, err := action.Act(t.Context(), e)
		if err != nil || !changed {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
	if got, want := out.String(), asPublished+"\n"+asPublished+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestALineKeepsWhatIsNotKnownHere: a later version may publish more fields, and another publisher
// may use line breaks.
func TestALineKeepsWhatIsNotKnownHere(t *testing.T) {
	t.Parallel()
	const later = `"traceparent":"00-1-2-00","later":[1.0,1e3,"\u003c < \u2028"],"data":{`
	want := strings.Replace(asPublished, `"data":{`, later, 1)
	e, err := events.Decode([]byte(strings.Replace(want, `"data":{`, "\r\n\t\"data\": {\n", 1) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := actions.NewStdout(&out).Act(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if out.String() != want+"\n" {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestStdoutNeedsNoTargetLabels(t *testing.T) {
	t.Parallel()
	target, err := actions.NewStdout(io.Discard).Target(events.ScaleEvent{})
	if err != nil || target != "standard output" {
		t.Errorf("%q, %v", target, err)
	}
}

var errClosed = errors.New("closed")

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errClosed }

func TestALineThatCannotBeWrittenIsAnErrorThatIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := events.ScaleEvent{Time: time.Unix(0, 0), Data: events.Data{Processor: "a", Sequence: 1, Direction: "none", Status: "ok"}}
	_, err := actions.NewStdout(closed{}).Act(t.Context(), e)
	if !errors.Is(err, errClosed) || errors.Is(err, events.ErrDeadLetter) {
		t.Errorf("got %v", err)
	}
}
