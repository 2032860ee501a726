package sizing

import "time"

// Memory is what an Answer leaves for the next one. It is stored as JSON. Rates are in LSNs per
// second.
type Memory struct {
	Began    time.Time         `json:"began,omitzero"`    // the first measurement
	Time     time.Time         `json:"time,omitzero"`     // of the last poll that measured arrivals
	Known    bool              `json:"known,omitempty"`   // whether one ever did
	Latest   float64           `json:"latest,omitempty"`  // arrivals between the last two polls, over all partitions
	Short    float64           `json:"short,omitempty"`   // their mean over 45 s
	Long     float64           `json:"long,omitempty"`    // their mean over 4 minutes
	ProvenAt time.Time         `json:"provenAt,omitzero"` // when an owner was last seen to do all that it can
	Best     float64           `json:"best,omitempty"`    // highest capacity within a day
	BestAt   time.Time         `json:"bestAt,omitzero"`   // when that was
	LookedAt time.Time         `json:"lookedAt,omitzero"` // when the owners were last measured
	Done     float64           `json:"done,omitempty"`    // by all live owners together, over about a minute
	Enough   time.Time         `json:"enough,omitzero"`   // since when fewer replicas would do; zero = they would not
	Trial    Trial             `json:"trial,omitzero"`    // the last scale-out that has to show whether it helps
	Windows  map[string]Window `json:"windows,omitempty"` // by live owner
	Flows    map[string]Flow   `json:"flows,omitempty"`   // by lease token
}

// Window is what a live owner did between two moves of its positions.
type Window struct {
	Since  time.Time `json:"since,omitzero"` // zero = none has begun
	Done   int64     `json:"done,omitempty"` // LSNs
	Moves  int       `json:"moves,omitempty"`
	Leases int       `json:"leases,omitempty"`
	Busy   bool      `json:"busy,omitempty"` // whether the owner had a backlog at each poll in it, else at none
}

// Flow is what was measured of one partition.
type Flow struct {
	Time       time.Time `json:"time,omitzero"`        // of its last measurement
	Known      bool      `json:"known,omitempty"`      // whether arrivals were measured
	Arrival    float64   `json:"arrival,omitempty"`    // long mean
	Session    int64     `json:"session,omitempty"`    // newest LSN at the last measurement
	Checkpoint int64     `json:"checkpoint,omitempty"` // LSN up to which changes were processed
	Pending    time.Time `json:"pending,omitzero"`     // first poll that found changes pending at this position; zero = there are none
	Batch      float64   `json:"batch,omitempty"`      // seconds that the last batch took; 0 = less than from poll to poll
	Owner      string    `json:"owner,omitempty"`      // live; "" = nobody
}

// Until returns the memory with each time that is after now, by a clock that was ahead, set to now.
// A window that such a clock began is forgotten.
func (m Memory) Until(now time.Time) Memory {
	for _, t := range []*time.Time{&m.Began, &m.Time, &m.ProvenAt, &m.BestAt, &m.LookedAt, &m.Enough, &m.Trial.At, &m.Trial.Until} {
		if t.After(now) {
			*t = now
		}
	}
	m.Windows = nil
	flows := make(map[string]Flow, len(m.Flows))
	for lease, f := range m.Flows {
		for _, t := range []*time.Time{&f.Time, &f.Pending} {
			if t.After(now) {
				*t = now
			}
		}
		flows[lease] = f
	}
	m.Flows = flows
	return m
}
