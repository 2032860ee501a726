package changefeed

import (
	"errors"
	"slices"
	"time"
)

// Cause is what many errors have in common: one account, container, queue or store, and how it refuses.
// The ids and numbers in the texts of the errors may differ.
type Cause struct {
	Of     string    `json:"of"`               // what refuses: "account shop.documents.azure.com", say
	Part   string    `json:"part,omitempty"`   // the part of it that refuses: "container shop/orders", say; "" = all of it
	Says   string    `json:"says"`             // what is wrong with it, after its name: "refuses (429, throttled)", say
	Effect string    `json:"effect"`           // what that keeps a processor from, after its name: "cannot be measured", say
	Remedy string    `json:"remedy,omitempty"` // what to do about it, as a request to the reader; "" if nothing is known
	Beside bool      `json:"beside,omitempty"` // it explains no unknown lag: a clock that is wrong, say
	Since  time.Time `json:"since,omitzero"`   // first of the polls in a row that saw it
}

// Unpublished is the Effect of a queue that refuses, which keeps every decision from acting.
const Unpublished = "could not publish"

// Unread is the Effect of a state table that refuses or does not answer, which all processors share.
const Unread = "could not be read"

// Is reports whether two causes are the same one, whenever they were seen.
func (c Cause) Is(other Cause) bool {
	return c.Of == other.Of && c.Part == other.Part && c.Says == other.Says
}

// CauseOf returns the Cause of an error; false if the error names none.
func CauseOf(err error) (Cause, bool) {
	var named interface{ Cause() Cause }
	if err == nil || !errors.As(err, &named) {
		return Cause{}, false
	}
	return named.Cause(), true
}

// AddCause adds the Cause of an error to others, unless it is one of them or the error names none.
func AddCause(causes []Cause, err error) []Cause {
	found, ok := CauseOf(err)
	if !ok || slices.ContainsFunc(causes, found.Is) {
		return causes
	}
	return append(causes, found)
}

// DateCauses sets since when each cause is seen: since now, or since earlier if the poll before saw it as well.
func DateCauses(causes, before []Cause, now time.Time) {
	for i := range causes {
		causes[i].Since = now
		if at := slices.IndexFunc(before, causes[i].Is); at >= 0 && before[at].Since.Before(now) {
			causes[i].Since = before[at].Since
		}
	}
}
