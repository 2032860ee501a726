package scaling

import (
	"math"
	"time"
)

// Moment is a time in Unix nanoseconds, from 1 to [math.MaxInt64]; 0 where there is none. It has a third of
// the size of a time.Time, and there are many for each partition. As JSON it is the time in UTC.
type Moment int64

// MomentOf returns the Moment nearest to a time, 0 for the zero time.
func MomentOf(t time.Time) Moment {
	switch {
	case t.IsZero():
		return 0
	case !t.After(time.Unix(0, 0)):
		return 1
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	default:
		return Moment(t.UnixNano())
	}
}

// Time returns the moment as a time in UTC.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// IsZero reports whether there is none.
func (m Moment) IsZero() bool { return m == 0 }

// Sub returns how long after another moment m is.
func (m Moment) Sub(other Moment) time.Duration { return time.Duration(m - other) }

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) { return m.Time().MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Moment) UnmarshalJSON(text []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(text); err != nil {
		return err
	}
	*m = MomentOf(t)
	return nil
}
