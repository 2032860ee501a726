package poller

import (
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// undelivered says why an event was not published.
func (p *Poller) undelivered(err error) *state.Undelivered {
	cause, named := changefeed.CauseOf(err)
	if !named {
		cause.Says = "does not answer"
	}
	cause.Remedy = strings.TrimSuffix("run feedscale check, which tries the queue; "+cause.Remedy, "; ")
	cause.Of, cause.Effect = p.Destination, "could not publish"
	if strings.Contains(p.Destination, "/") {
		cause.Of = "queue " + p.Destination
	}
	return &state.Undelivered{Error: err.Error(), Cause: cause}
}

// causesOf are those that a State names.
func causesOf(s *state.State) []changefeed.Cause {
	causes := slices.Clone(s.Lag.Causes)
	if s.Undelivered != nil {
		causes = append(causes, s.Undelivered.Cause)
	}
	return causes
}

// trouble is what refuses, in whatever parts, as all subjects of a tick see it together.
type trouble struct{ of, says string }

// blame are the subjects that see it.
type blame struct {
	since   time.Time
	remedy  string
	problem string // of the first of them
	names   []string
}

// troubles are what some subjects see.
type troubles map[trouble]*blame

func (t troubles) add(d *subject, causes []changefeed.Cause) {
	for _, c := range causes {
		k := trouble{c.Of, c.Says}
		if t[k] == nil {
			t[k] = &blame{since: c.Since, remedy: c.Remedy, problem: d.problem}
		}
		if c.Since.Before(t[k].since) {
			t[k].since = c.Since
		}
		if !slices.Contains(t[k].names, d.name) {
			t[k].names = append(t[k].names, d.name)
		}
	}
}

// namesShown is how many names a line of the log has.
const namesShown = 5

// sayCauses logs, once for all subjects, what begins to refuse with this tick, and what has ended. Both are
// told from the stored States, so that a restart or another process repeats none and misses none.
func (t *tick) sayCauses(polls []*poll, groups []*subject) {
	before, now := make(troubles), make(troubles)
	note := func(d *subject) {
		before.add(d, d.saw)
		if d.stage == committed {
			now.add(d, d.sees)
		} else {
			now.add(d, d.saw)
		}
	}
	for _, d := range polls {
		note(&d.subject)
	}
	for _, d := range groups {
		note(d)
	}
	for k, b := range now {
		if before[k] == nil {
			t.Log.Warn("a failure begins", "what", k.of, "says", k.says, "processors", len(b.names),
				"names", strings.Join(b.names[:min(namesShown, len(b.names))], " "), "error", b.problem, "next", b.remedy)
		}
	}
	for k, b := range before {
		if now[k] == nil {
			t.Log.Info("a failure has ended", "what", k.of, "says", k.says, "processors", len(b.names),
				"since", b.since.UTC().Format(time.RFC3339), "duration", t.scope.now.Sub(b.since).Round(time.Second).String())
		}
	}
}
