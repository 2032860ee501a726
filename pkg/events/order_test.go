package events_test

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestTheNewerOfTwoEventsHasTheGreaterID(t *testing.T) {
	t.Parallel()
	const epoch = 1767225600
	id := func(epoch, sequence int64) string {
		return events.Data{Processor: "orders", Epoch: epoch, Sequence: sequence}.ID()
	}
	cases := []struct {
		name        string
		first, next string
		newer, same bool
	}{
		{"the first of all", "", id(epoch, 1), true, false},
		{"the next sequence", id(epoch, 7), id(epoch, 8), true, false},
		{"a sequence far ahead, since events may be lost", id(epoch, 7), id(epoch, 70), true, false},
		{"the same event again", id(epoch, 7), id(epoch, 7), false, true},
		{"a lower sequence", id(epoch, 7), id(epoch, 6), false, false},
		{"a later epoch, which begins at 1 again", id(epoch, 7), id(epoch+60, 1), true, false},
		{"a later epoch with the same sequence", id(epoch, 7), id(epoch+60, 7), true, false},
		{"an earlier epoch, whatever its sequence", id(epoch, 7), id(epoch-60, 70), false, false},

		{"without epochs: the first of all", "", id(0, 1), true, false},
		{"without epochs: the next sequence", id(0, 7), id(0, 8), true, false},
		{"without epochs: the same event again", id(0, 7), id(0, 7), false, true},
		{"without epochs: a lower sequence", id(0, 7), id(0, 6), false, false},
		{"the first with an epoch, after an upgrade", id(0, 7), id(epoch, 8), true, false},
		{"one without an epoch, left behind by an upgrade", id(epoch, 8), id(0, 9), false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.next > c.first; got != c.newer {
				t.Errorf("newer is %v, want %v", got, c.newer)
			}
			if got := c.next == c.first; got != c.same {
				t.Errorf("the same event is %v, want %v", got, c.same)
			}
		})
	}
}
