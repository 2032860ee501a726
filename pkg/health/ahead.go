package health

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	aheadPolls = 3                // polls in a row that see a position ahead of the feed until it counts,
	aheadFor   = 60 * time.Second // and the time that they span at least
)

// Ahead is a position that the feed has not reached yet, as polls in a row saw it.
type Ahead struct {
	Position int64     `json:"position"` // LSN of the checkpoint at the first of them
	Since    time.Time `json:"since"`    // the first of them
	Polls    int       `json:"polls"`
}

// ahead returns what is remembered of a position that is ahead of the feed; nil for any other. A
// replica of the service that is late reaches the position of the first poll in the meantime, so
// that the polls are counted anew (docs/lag.md, Positions that the feed has not reached).
func (in Input) ahead(p *changefeed.Partition, last *Ahead) *Ahead {
	switch {
	case p.Lag == nil || p.Carried():
		return last
	case !p.Beyond():
		return nil
	case last == nil || *p.SessionLSN >= last.Position:
		return &Ahead{Position: *p.CheckpointLSN, Since: in.Now, Polls: 1}
	}
	return &Ahead{Position: last.Position, Since: last.Since, Polls: min(aheadPolls, last.Polls+1)}
}

// markAhead makes the lag of a partition unknown if its position is ahead of the feed for certain.
func (in Input) markAhead(p *changefeed.Partition, a *Ahead) {
	if a == nil || p.Lag == nil || a.Polls < aheadPolls || in.Now.Sub(a.Since) < aheadFor {
		return
	}
	p.Lag, p.Age, p.Status = nil, nil, changefeed.StatusAhead
	p.Ahead = &changefeed.Ahead{Position: *p.CheckpointLSN, Feed: *p.SessionLSN}
	p.Error = fmt.Sprintf("the lease stands at %d, and the newest change of its range is %d: the position is from another account, region or container, "+
		"and what is written up to it is skipped", p.Ahead.Position, p.Ahead.Feed)
}
