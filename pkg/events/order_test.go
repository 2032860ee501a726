package events_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestWhichOfTwoEventsIsNewer(t *testing.T) {
	t.Parallel()
	// at is a position whose event was made so many minutes after an agreed time.
	at := func(sequence int64, minutes int) events.Position {
		return events.Position{Sequence: sequence, Time: time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)}
	}
	cases := []struct {
		name        string
		first, next events.Position
		newer, same bool
	}{
		{"the first of all", events.Position{}, at(1, 0), true, false},
		{"the next sequence", at(7, 0), at(8, 1), true, false},
		{"the next sequence, made at the same time", at(7, 0), at(8, 0), true, false},
		{"the next sequence, made before, by a clock that was set back", at(7, 0), at(8, -1), true, false},
		{"a sequence far ahead, since events may be lost", at(7, 0), at(70, 1), true, false},
		{"the same event again", at(7, 0), at(7, 0), false, true},
		{"the same sequence, made anew", at(7, 0), at(7, 5), false, true},
		{"a lower sequence, made before", at(7, 0), at(6, -1), false, false},
		{"a lower sequence, made at the same time", at(7, 0), at(6, 0), false, false},
		{"a lower sequence, made later: the publisher lost its state", at(7, 0), at(1, 1), true, false},
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

func TestAnEventStandsWhereItsSequenceAndTimeSay(t *testing.T) {
	t.Parallel()
	e := ordersEvent()
	if got, want := e.Position(), (events.Position{Sequence: 42, Time: e.Time}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
