package events_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestWhichOfTwoEventsIsNewer(t *testing.T) {
	t.Parallel()
	const epoch = 1767225600
	// at is a position whose event was made so many minutes after an agreed time.
	at := func(epoch, sequence int64, minutes int) events.Position {
		return events.Position{Epoch: epoch, Sequence: sequence, Time: time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)}
	}
	cases := []struct {
		name        string
		first, next events.Position
		newer, same bool
	}{
		{"the first of all", events.Position{}, at(epoch, 1, 0), true, false},
		{"the next sequence", at(epoch, 7, 0), at(epoch, 8, 1), true, false},
		{"the next sequence, made at the same time", at(epoch, 7, 0), at(epoch, 8, 0), true, false},
		{"the next sequence, made before, by a clock that was set back", at(epoch, 7, 0), at(epoch, 8, -1), true, false},
		{"a sequence far ahead, since events may be lost", at(epoch, 7, 0), at(epoch, 70, 1), true, false},
		{"the same event again", at(epoch, 7, 0), at(epoch, 7, 0), false, true},
		{"the same epoch and sequence, made anew", at(epoch, 7, 0), at(epoch, 7, 5), false, true},
		{"a lower sequence, made before", at(epoch, 7, 0), at(epoch, 6, -1), false, false},
		{"a lower sequence, whatever its time", at(epoch, 7, 0), at(epoch, 6, 5), false, false},
		{"a later epoch, which begins at 1 again", at(epoch, 7, 0), at(epoch+60, 1, 1), true, false},
		{"a later epoch with the same sequence", at(epoch, 7, 0), at(epoch+60, 7, 1), true, false},
		{"a later epoch, made before, by a clock that was set back", at(epoch, 7, 0), at(epoch+60, 1, -1), true, false},
		{"an earlier epoch, whatever its sequence and time", at(epoch, 7, 0), at(epoch-60, 70, 5), false, false},

		{"without epochs: the first of all", events.Position{}, at(0, 1, 0), true, false},
		{"without epochs: the next sequence", at(0, 7, 0), at(0, 8, 1), true, false},
		{"without epochs: the next sequence, made before", at(0, 7, 0), at(0, 8, -1), true, false},
		{"without epochs: the same event again", at(0, 7, 0), at(0, 7, 0), false, true},
		{"without epochs: the same sequence, made anew", at(0, 7, 0), at(0, 7, 5), false, true},
		{"without epochs: a lower sequence, made before", at(0, 7, 0), at(0, 6, -1), false, false},
		{"without epochs: a lower sequence, made at the same time", at(0, 7, 0), at(0, 6, 0), false, false},
		{"without epochs: a lower sequence, made later: the publisher lost its state", at(0, 7, 0), at(0, 1, 1), true, false},
		{"the first with an epoch, after an upgrade", at(0, 7, 0), at(epoch, 8, 1), true, false},
		{"one without an epoch, left behind by an upgrade", at(epoch, 8, 0), at(0, 9, 1), false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.first.Precedes(c.next); got != c.newer {
				t.Errorf("newer is %v, want %v", got, c.newer)
			}
			if got := c.first.SameEvent(c.next); got != c.same {
				t.Errorf("the same event is %v, want %v", got, c.same)
			}
		})
	}
}

func TestAnEventStandsWhereItsEpochSequenceAndTimeSay(t *testing.T) {
	t.Parallel()
	e := ordersEvent()
	if got, want := e.Position(), (events.Position{Epoch: 1767225600, Sequence: 42, Time: e.Time}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
