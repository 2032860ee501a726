package changefeed

import "time"

// StartFrom is what a processor does where a lease has no continuation yet.
// The zero value is now: only what is written from here on counts.
type StartFrom struct {
	Beginning bool
	Time      time.Time // from then on; zero for now and for the beginning
}

// Now tells whether the processor starts from now: nothing can be measured then.
func (s StartFrom) Now() bool { return !s.Beginning && s.Time.IsZero() }
