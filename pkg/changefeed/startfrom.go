package changefeed

import "time"

// StartFrom says where a processor starts to read where a lease has no continuation yet. The zero
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
