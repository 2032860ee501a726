package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Cause is a failure of one account, container, queue or store, with the processors and groups that
// it affects (docs/status.md, Causes).
type Cause struct {
	// what fails, since when and how, on one line without a full stop
	Sentence string     `json:"sentence"`
	Remedy   string     `json:"remedy"` // what to do about it
	Since    *time.Time `json:"since"`  // when it was first seen; null if unknown
	// it does not cause the failures of these, such as a wrong clock
	Beside bool `json:"beside"`
	// it is shown first: it affects several, or what all of them use
	Shared bool `json:"shared"`
	// the affected processors and groups, in the order of the list
	Names []string `json:"names"`
}

// Causes returns the failures in a list, the one that affects the most entries first. Containers of
// an account that fail in the same way are one cause, of the account.
func Causes(l List) []Cause {
	type key struct{ of, says, effect string }
	type found struct {
		changefeed.Cause
		names []string
		parts map[string]bool
	}
	var order []key
	causes := map[key]*found{}
	note := func(name string, all []changefeed.Cause) {
		for _, c := range all {
			k := key{c.Of, c.Says, c.Effect}
			f := causes[k]
			if f == nil {
				f = &found{Cause: c, parts: map[string]bool{}}
				causes[k], order = f, append(order, k)
			}
			if c.Since.Before(f.Since) {
				f.Since = c.Since
			}
			f.parts[c.Part] = true
			if n := len(f.names); n == 0 || f.names[n-1] != name {
				f.names = append(f.names, name)
			}
		}
	}
	for _, p := range l.Processors {
		note(p.Name, p.Causes)
	}
	for _, g := range l.Groups {
		note(g.Name, g.Causes)
	}
	all := make([]Cause, 0, len(order))
	for _, k := range order {
		f := causes[k]
		what := f.Of
		if f.Part != "" && len(f.parts) == 1 {
			what = f.Part + " of " + f.Of
		}
		c := Cause{Remedy: f.Remedy, Beside: f.Beside, Shared: len(f.names) > 1 || f.Beside || f.Effect == changefeed.Unpublished || f.Effect == changefeed.Unread, Names: f.names}
		since := ""
		if !f.Since.IsZero() {
			c.Since = &f.Since
			since = " since " + clock(f.Since, l.Time)
		}
		who := f.names[0]
		if len(f.names) > 1 {
			who = Count(len(f.names), "processor")
		}
		c.Sentence = fmt.Sprintf("%s %s%s: %s %s", what, f.Says, since, who, f.Effect)
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(len(b.Names), len(a.Names)) })
	return all
}

// Outbox says which events of a processor or a group are not published yet.
type Outbox struct {
	Count  int        `json:"count"`  // events
	Oldest *time.Time `json:"oldest"` // when the oldest was decided; null if none waits
	// why the last tick did not publish; null if it did, or if nothing waits
	Error *string `json:"error"`
}

func outboxOf(l Lookup) Outbox {
	o := Outbox{Count: len(l.Waiting)}
	if o.Count > 0 {
		o.Oldest = new(l.Oldest())
		if l.Undelivered != nil {
			o.Error = optional(l.Undelivered.Error)
		}
	}
	return o
}
