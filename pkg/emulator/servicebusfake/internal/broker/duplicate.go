package broker

import "time"

// seen remembers the ids of messages for the window of duplicate detection.
type seen struct {
	at    map[string]time.Time
	order []sighting // oldest first
}

type sighting struct {
	id string
	at time.Time
}

// before tells whether the id was seen within the window, and remembers it if it was not: a
// duplicate does not prolong the window.
func (s *seen) before(id string, now time.Time, window time.Duration) bool {
	for len(s.order) > 0 && !s.order[0].at.Add(window).After(now) {
		delete(s.at, s.order[0].id)
		s.order = s.order[1:]
	}
	if _, ok := s.at[id]; ok {
		return true
	}
	if s.at == nil {
		s.at = map[string]time.Time{}
	}
	s.at[id] = now
	s.order = append(s.order, sighting{id, now})
	return false
}
