package sizing

import "time"

// Memory is the input that an Answer leaves for the next one. It is stored as JSON. Rates are in
// LSNs per second.
type Memory struct {
	Time     time.Time `json:"time,omitzero"`     // time of the last measurement
	Began    time.Time `json:"began,omitzero"`    // time of the first, which is new after an upgrade or without a State
	Known    bool      `json:"known,omitempty"`   // arrivals were measured at least once
	Short    float64   `json:"short,omitempty"`   // arrivals over all partitions, mean over 45 s
	Done     float64   `json:"done,omitempty"`    // processed by all live owners together, mean over 45 s
	ProvenAt time.Time `json:"provenAt,omitzero"` // when an owner was last seen to work at its full rate
	Best     float64   `json:"best,omitempty"`    // the best capacity that was certain; it falls to the present one within hours
	Enough   time.Time `json:"enough,omitzero"`   // since when fewer replicas are enough; zero = they are not
	ScaleOut ScaleOut  `json:"scaleOut,omitzero"` // the last one whose effect is not known yet

	Owners     map[string]Owner     `json:"owners,omitzero"`     // by name, live ones only
	Partitions map[string]Partition `json:"partitions,omitzero"` // by lease token
}

// Partition is the memory of one partition.
type Partition struct {
	Time       time.Time `json:"time,omitzero"`        // of its last measurement
	Known      bool      `json:"known,omitempty"`      // whether arrivals were measured
	Arrival    float64   `json:"arrival,omitempty"`    // mean over 4 minutes
	Session    int64     `json:"session,omitempty"`    // newest LSN at the last measurement
	Checkpoint int64     `json:"checkpoint,omitempty"` // LSN up to which changes were processed
	Waits      time.Time `json:"pending,omitzero"`     // first poll that found changes pending at this position; zero = nothing is
	Batch      float64   `json:"batch,omitempty"`      // seconds that a batch is expected to take; 0 = less than between two polls
}

// Owner is a window of a live owner: its work between two moves of its positions.
type Owner struct {
	Since   time.Time `json:"since,omitzero"`    // zero = none has begun
	Done    int64     `json:"done,omitempty"`    // LSNs
	Pending int64     `json:"pending,omitempty"` // LSNs when it began
	Moves   int       `json:"moves,omitempty"`   // of its positions
	Leases  int       `json:"leases,omitempty"`  // that it owned during the whole window
	Behind  bool      `json:"behind,omitempty"`  // at each poll, judged by ages
	late    bool      // now, by more than that: as load.late
}

// ScaleOut is a scale-out whose effect is still measured. If all replicas share a limit, such as a
// database, more of them do not help.
type ScaleOut struct {
	At      time.Time `json:"at,omitzero"`       // when it was decided; zero = none
	From    int       `json:"from,omitempty"`    // replicas before
	Rate    float64   `json:"rate,omitempty"`    // processed by all owners before, in LSNs per second
	Backlog float64   `json:"backlog,omitempty"` // LSNs that had waited before
	Until   time.Time `json:"until,omitzero"`    // until when it is not repeated; zero = it helped, or is not judged yet
}
