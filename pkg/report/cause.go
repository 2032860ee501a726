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
	Sentence string     `json:"sentence"` // what fails, since when and how, without a full stop
	Remedy   string     `json:"remedy"`   // what to do about it
	Since    *time.Time `json:"since"`    // when it was first seen; null if unknown
	Beside   bool       `json:"beside"`   // it does not cause their failures, such as a wrong clock
	Shared   bool       `json:"shared"`   // it affects several, or what all of them use
	Names    []string   `json:"names"`    // the affected, in the order of the list
}

// trouble is a Cause while its list is read. Its Part is "" if several parts have it.
type trouble struct {
	changefeed.Cause
	names []string
}

// Causes returns the failures in a list, the one that affects the most entries first. Containers of
// an account that fail in the same way are one cause, of the account.
func Causes(l List) []Cause {
	var found []*trouble
	for _, r := range l.Rows() {
		for _, c := range r.Causes {
			at := slices.IndexFunc(found, func(t *trouble) bool { return t.Of == c.Of && t.Says == c.Says && t.Effect == c.Effect })
			if at < 0 {
				at, found = len(found), append(found, &trouble{Cause: c})
			}
			t := found[at]
			if t.Part != c.Part {
				t.Part = ""
			}
			if c.Since.Before(t.Since) {
				t.Since = c.Since
			}
			if !slices.Contains(t.names[max(0, len(t.names)-1):], r.Name) {
				t.names = append(t.names, r.Name)
			}
		}
	}
	all := make([]Cause, len(found))
	for i, t := range found {
		all[i] = t.shown(l.Time)
	}
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(len(b.Names), len(a.Names)) })
	return all
}

// shown returns the Cause, with its time as seen from now.
func (t *trouble) shown(now time.Time) Cause {
	what, since, who := t.Of, "", t.names[0]
	if t.Part != "" {
		what = t.Part + " of " + t.Of
	}
	if !t.Since.IsZero() {
		since = " since " + clock(t.Since, now)
	}
	if len(t.names) > 1 {
		who = Count(len(t.names), "processor")
	}
	shared := len(t.names) > 1 || t.Beside || t.Effect == changefeed.Unpublished || t.Effect == changefeed.Unread
	sentence := fmt.Sprintf("%s %s%s: %s %s", what, t.Says, since, who, t.Effect)
	return Cause{Sentence: sentence, Remedy: t.Remedy, Since: Given(t.Since), Beside: t.Beside, Shared: shared, Names: t.names}
}

// Outbox says which events of a processor or a group are not published yet.
type Outbox struct {
	Count  int        `json:"count"`  // events
	Oldest *time.Time `json:"oldest"` // when the oldest was decided; null if none waits
	Error  *string    `json:"error"`  // why the last tick did not publish; null if it did
}

func outboxOf(l Lookup) Outbox {
	o := Outbox{Count: len(l.Waiting), Oldest: Given(l.Oldest())}
	if o.Count > 0 && l.Undelivered != nil {
		o.Error = Given(l.Undelivered.Error)
	}
	return o
}
