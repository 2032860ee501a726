package sizing

import "time"

// Memory is what an Answer leaves for the next one. It is stored as JSON. Rates are in LSNs per
// second.
type Memory struct {
	Began      time.Time            `json:"began,omitzero"`       // the first measurement
	Time       time.Time            `json:"time,omitzero"`        // the last one
	Known      bool                 `json:"known,omitempty"`      // whether arrivals were ever measured
	Latest     float64              `json:"latest,omitempty"`     // arrivals between the last two polls, over all partitions
	Short      float64              `json:"short,omitempty"`      // their mean over 45 s
	Long       float64              `json:"long,omitempty"`       // their mean over 4 minutes
	ProvenAt   time.Time            `json:"provenAt,omitzero"`    // when an owner was last seen to do all that it can
	Done       float64              `json:"done,omitempty"`       // by all live owners together, mean over 45 s
	Enough     time.Time            `json:"enough,omitzero"`      // since when fewer replicas would do; zero = they would not
	ScaleOut   ScaleOut             `json:"scaleOut,omitzero"`    // the last one that has to show whether it helps
	Owners     map[string]Owner     `json:"owners,omitempty"`     // live ones
	Partitions map[string]Partition `json:"partitions,omitempty"` // by lease token
}

// Partition is what was measured of one partition.
type Partition struct {
	Time       time.Time `json:"time,omitzero"`        // of its last measurement
	Known      bool      `json:"known,omitempty"`      // whether arrivals were measured
	Arrival    float64   `json:"arrival,omitempty"`    // mean over 4 minutes
	Session    int64     `json:"session,omitempty"`    // newest LSN at the last measurement
	Checkpoint int64     `json:"checkpoint,omitempty"` // LSN up to which changes were processed
	Head       int64     `json:"head,omitempty"`       // newest LSN at the poll before the position last moved
	Behind     bool      `json:"behind,omitempty"`     // whether the last batch left changes that were there when it began
	Waits      time.Time `json:"pending,omitzero"`     // first poll that found changes pending at this position; zero = there are none
	Batch      float64   `json:"batch,omitempty"`      // seconds that the last batch took; 0 = less than from poll to poll
	Owner      string    `json:"owner,omitempty"`      // live; "" = nobody
}

// Owner is a window on a live owner: what it did between two moves of its positions.
type Owner struct {
	Since  time.Time `json:"since,omitzero"`   // zero = none has begun
	Done   int64     `json:"done,omitempty"`   // LSNs
	Came   int64     `json:"came,omitempty"`   // LSNs that arrived in its partitions
	Moves  int       `json:"moves,omitempty"`  // of its positions
	Leases int       `json:"leases,omitempty"` // that it had all the time
	Behind bool      `json:"behind,omitempty"` // at each poll, as far as ages and batches tell; else at none
}

// ScaleOut is one that has to show whether it helps: a limit that all replicas share, such as a
// database, makes more of them useless.
type ScaleOut struct {
	At    time.Time `json:"at,omitzero"`    // when it was decided; zero = there is none
	From  int       `json:"from,omitempty"` // replicas before
	To    int       `json:"to,omitempty"`   // replicas asked for
	Rate  float64   `json:"rate,omitempty"` // what all owners did before
	Until time.Time `json:"until,omitzero"` // until when it is not repeated; zero = it was not found wanting
}

// Until returns the memory with each time that is after now, by a clock that was ahead, set to now.
// What such a clock began to watch is forgotten.
func (m Memory) Until(now time.Time) Memory {
	clamp := func(times ...*time.Time) {
		for _, t := range times {
			if t.After(now) {
				*t = now
			}
		}
	}
	clamp(&m.Began, &m.Time, &m.ProvenAt, &m.Enough, &m.ScaleOut.At, &m.ScaleOut.Until)
	partitions := make(map[string]Partition, len(m.Partitions))
	for lease, p := range m.Partitions {
		clamp(&p.Time, &p.Waits)
		partitions[lease] = p
	}
	m.Owners, m.Partitions = nil, partitions
	return m
}
