package report_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// refusing is an error with a cause.
type refusing struct {
	error
	cause changefeed.Cause
}

func (r refusing) Cause() changefeed.Cause { return r.cause }

func throttled(container string, since time.Time) changefeed.Cause {
	return changefeed.Cause{
		Of: "account shop", Part: "container " + container, Says: "refuses (429, throttled)", Effect: "could not be measured", Remedy: "raise it", Since: since,
	}
}

func TestProcessorsThatFailByOneCauseAreOneSentence(t *testing.T) {
	t.Parallel()
	early := noon.Add(-9 * time.Hour)
	seen := func(name string, causes ...changefeed.Cause) report.StoredProcessor {
		s := of(changefeed.ProcessorLag{Time: noon, Error: "refused " + name, Causes: causes})
		s.Processor = name
		return report.NewStored(report.Lookup{State: s})
	}
	for _, c := range []struct {
		rule string
		of   []report.StoredProcessor
		want []string
	}{
		{"nothing", []report.StoredProcessor{seen("a")}, nil},
		{"one container", []report.StoredProcessor{seen("a", throttled("shop/orders", noon)), seen("b", throttled("shop/orders", early))}, []string{
			"container shop/orders of account shop refuses (429, throttled) since 03:00 UTC: 2 processors could not be measured: a b",
		}},
		{"several of an account", []report.StoredProcessor{seen("a", throttled("shop/orders", noon)), seen("b", throttled("shop/carts", noon))}, []string{
			"account shop refuses (429, throttled) since 12:00 UTC: 2 processors could not be measured: a b",
		}},
		{"the one of most comes first", []report.StoredProcessor{
			seen("a", changefeed.Cause{Of: "account b", Says: "does not answer", Effect: "could not be measured"}),
			seen("b", throttled("shop/orders", noon)), seen("c", throttled("shop/orders", noon)),
		}, []string{
			"container shop/orders of account shop refuses (429, throttled) since 12:00 UTC: 2 processors could not be measured: b c",
			"account b does not answer: a could not be measured: a",
		}},
		{"a row that cannot be read", []report.StoredProcessor{report.NewStored(report.Lookup{
			State: state.State{Processor: "a"}, Problem: "the state cannot be read",
			Err: fmt.Errorf("loading: %w", refusing{errors.New("gone"), changefeed.Cause{Of: "state table t", Says: "refuses (404)", Effect: "could not be read"}}),
		})}, []string{"state table t refuses (404): a could not be read: a"}},
	} {
		var got []string
		for _, found := range report.NewList(noon, c.of, nil).Causes {
			text := found.Sentence + ":"
			for _, name := range found.Names {
				text += " " + name
			}
			got = append(got, text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
	}
}

// waiting is an event in the outbox that was decided at a time.
func waiting(decided time.Time) state.Event {
	s := of(leases(partition("0", "orders-1", 7, 3, changefeed.StatusLagging)))
	s.AttemptedAt, s.Epoch, s.Sequence = decided, 1, 1
	s.Decision.Time, s.Decision.Direction = decided, scaling.None
	body, err := report.NewEvent(s, nil).Encode()
	if err != nil {
		panic(err) // a mistake in the test itself
	}
	return state.Event{Processor: "orders", Sequence: 1, Body: body}
}

func TestAnEventThatWaitsTooLongIsFound(t *testing.T) {
	t.Parallel()
	s := of(leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)))
	s.Undelivered = &state.DeliveryFailure{Error: "the queue is gone", Cause: changefeed.Cause{Of: "queue shop/scale", Says: "refuses (not found)", Effect: changefeed.Unpublished}}
	for _, c := range []struct {
		since time.Duration
		found bool
	}{{30 * time.Second, false}, {31 * time.Second, true}} {
		stored := report.NewStored(report.Lookup{State: s, Waiting: []state.Event{waiting(noon.Add(-c.since))}, Overdue: c.found})
		if o := stored.Outbox; o.Count != 1 || o.Oldest == nil || !o.Oldest.Equal(noon.Add(-c.since)) || o.Error == nil || *o.Error != "the queue is gone" {
			t.Errorf("after %s: %+v", c.since, o)
		}
		found := slices.ContainsFunc(stored.Findings, func(f report.Finding) bool {
			return f.Code == "unpublished" && f.Severity == report.Critical && f.Sentence == "1 scale event could not be published since 11:59 UTC, so that nothing acts by the decision: the queue is gone"
		})
		if found != c.found || (len(stored.Causes) == 1) != c.found {
			t.Errorf("after %s: %+v, %+v", c.since, stored.Findings, stored.Causes)
		}
		if all := report.NewList(noon, []report.StoredProcessor{stored}, nil).Causes; c.found && !all[0].Shared {
			t.Errorf("a queue that keeps all decisions from acting is said below: %+v", all)
		}
	}
	if o := report.NewStored(report.Lookup{State: s}).Outbox; o.Count != 0 || o.Oldest != nil || o.Error != nil {
		t.Errorf("an empty outbox is %+v", o)
	}
}

// TestAWrongClockExplainsNoFailure: a cause beside the failures is shown as such.
func TestAWrongClockExplainsNoFailure(t *testing.T) {
	t.Parallel()
	s := of(leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)))
	s.Lag.Causes = []changefeed.Cause{{Of: "the clock of this machine", Says: "is wrong", Effect: "followed the corrected time", Beside: true}}
	causes := report.NewList(noon, []report.StoredProcessor{report.NewStored(report.Lookup{State: s})}, nil).Causes
	if len(causes) != 1 || !causes[0].Beside || !causes[0].Shared {
		t.Errorf("%+v", causes)
	}
}
