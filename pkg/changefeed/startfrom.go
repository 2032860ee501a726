package changefeed

import "time"

// StartFrom says where a processor starts to read a lease that has no continuation yet. The zero
// value is now: changes that were written before the processor started are not read.
type StartFrom struct {
	Beginning bool
	Time      time.Time // start at this time; zero for now and for the beginning
}

// Now reports whether the processor starts from now. Then the lag of a lease without a continuation
// cannot be measured.
func (s StartFrom) Now() bool { return !s.Beginning && s.Time.IsZero() }

// StartAt is the start at a time. The year 1 is how the SDKs write the beginning
// (azure-cosmos-dotnet-v3, WithStartTime(DateTime.MinValue); Go's zero time is the same moment, and
// would read as now).
func StartAt(t time.Time) StartFrom {
	if t.UTC().Year() <= 1 {
		return StartFrom{Beginning: true}
	}
	return StartFrom{Time: t.UTC()}
}

// begins is where a lease without a continuation begins: as it says itself, or else as its processor is
// told to start.
func (l *Lease) begins(start StartFrom) StartFrom {
	if l.StartFrom != nil {
		return *l.StartFrom
	}
	return start
}

// Uncheckpointed reports whether the position of the lease is in its owner's memory alone: it has no
// continuation, and its processor starts from now. The feed of all versions and deletes can be read from
// now on only, whatever start says.
func (l *Lease) Uncheckpointed(start StartFrom) bool {
	return l.Continuation == "" && (l.begins(start).Now() || l.Mode == FullFidelity)
}

// FromNow is the continuation of a read that answers with the newest LSN and without changes.
const FromNow = "*"

// From returns the position that the lease is read from: what follows a continuation, "" being the
// beginning, and what was written since a time, unless that is zero.
func (l *Lease) From(start StartFrom) (continuation string, since time.Time) {
	switch {
	case l.Uncheckpointed(start):
		return FromNow, time.Time{}
	case l.Continuation == "":
		return "", l.begins(start).Time
	case l.StartFrom != nil:
		return l.Continuation, l.StartFrom.Time // Java sends it with the token, too
	default:
		return l.Continuation, time.Time{}
	}
}
