package poller

import (
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// undelivered is why an event was not published, for the State.
func (p *Poller) undelivered(err error) *state.Undelivered {
	cause, named := changefeed.CauseOf(err)
	if !named {
		cause.Says = "does not answer"
	}
	cause.Remedy = strings.TrimSuffix("run feedscale check, which tries the queue; "+cause.Remedy, "; ")
	cause.Of, cause.Effect = p.Destination, changefeed.Unpublished
	if strings.Contains(p.Destination, "/") {
		cause.Of = "queue " + p.Destination
	}
	return &state.Undelivered{Error: err.Error(), Cause: cause}
}

// causesOf returns the causes that a State names.
func causesOf(s *state.State) []changefeed.Cause {
	causes := slices.Clone(s.Lag.Causes)
	if s.Undelivered != nil {
		causes = append(causes, s.Undelivered.Cause)
	}
	return causes
}

// trouble is what refuses and how, in whatever part of it.
type trouble struct{ of, says string }

// blame is a trouble as all subjects of a tick see it together.
type blame struct {
	changefeed.Cause          // the first that was seen, since the earliest
	problem          string   // why the first of the subjects does not know all
	names            []string // of the subjects
}

type troubles map[trouble]*blame

func (t troubles) add(d *subject, causes []changefeed.Cause) {
	for _, c := range causes {
		k := trouble{c.Of, c.Says}
		b := t[k]
		if b == nil {
			b = &blame{Cause: c, problem: d.problem}
			t[k] = b
		}
		if c.Since.Before(b.Since) {
			b.Since = c.Since
		}
		if !slices.Contains(b.names, d.name) {
			b.names = append(b.names, d.name)
		}
	}
}

// namesShown is how many names a line of the log has.
const namesShown = 5

// sayCauses logs, once for all subjects, what begins to refuse with this tick, and what has ended.
// Both are told from the stored States, so that a restart or another process repeats none and
// misses none.
func (t *tick) sayCauses(subjects []*subject) {
	before, now := make(troubles), make(troubles)
	for _, d := range subjects {
		before.add(d, d.saw)
		if d.stage != committed {
			d.sees = d.saw
		}
		now.add(d, d.sees)
	}
	for k, b := range now {
		if before[k] == nil {
			t.Log.Warn("a failure begins", "what", b.Of, "says", b.Says, "processors", len(b.names),
				"names", strings.Join(b.names[:min(namesShown, len(b.names))], " "), "error", b.problem, "next", b.Remedy)
		}
	}
	for k, b := range before {
		if now[k] == nil {
			t.Log.Info("a failure has ended", "what", b.Of, "says", b.Says, "processors", len(b.names),
				"since", b.Since.UTC().Format(time.RFC3339), "duration", t.scope.now.Sub(b.Since).Round(time.Second).String())
		}
	}
}
