package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// samples logs a line for each processor and group, with what was measured and decided, for charts and alerts on
// the log (docs/monitor.md, Sample lines).
type samples struct {
	log   *slog.Logger
	every time.Duration // a line at least this often, and at each change; 0 = none
	last  sync.Map      // what decides whether a line is due, of the last one; by name
}

// processor logs the line of a poll if one is due. It is safe for concurrent use.
func (s *samples) processor(polled state.State) {
	if s.every == 0 {
		return
	}
	p := report.NewStored(report.Lookup{State: polled})
	if !s.due(polled, p.Status, p.Complete, p.DesiredReplicas) {
		return
	}
	var unknown *int // what is unknown is null
	if p.PartitionCount != nil {
		unknown = new(0)
		for i := range polled.Lag.Partitions {
			if !polled.Lag.Partitions[i].Known() {
				*unknown++
			}
		}
	}
	var left *float64
	if retention := polled.Lag.Retention; retention > 0 && p.ChangeAgeSeconds != nil {
		left = new(retention.Seconds() - float64(*p.ChangeAgeSeconds))
	}
	s.log.Info("sample",
		"processor", p.Name, "group", p.Group, "status", p.Status, "lag", p.Lag, "ageSeconds", p.ChangeAgeSeconds,
		"desiredReplicas", p.DesiredReplicas, "previousReplicas", previous(polled), "complete", p.Complete,
		"partitions", p.PartitionCount, "partitionsWithLag", p.PartitionsWithLag, "partitionsUnknown", unknown,
		"arrivalPerSecond", p.ArrivalPerSecond, "catchUpSeconds", p.CatchUpSeconds, "retentionSecondsLeft", left,
		"requestCharge", p.RequestCharge, "requests", p.Requests)
}

// groups logs the lines of groups that are due after a tick.
func (s *samples) groups(result report.Tick) {
	if s.every == 0 {
		return
	}
	for _, decided := range result.Groups {
		g := report.NewGroup(decided)
		if s.due(decided, g.Status, g.Complete, g.DesiredReplicas) {
			s.log.Info("sample", "processor", nil, "group", g.Name, "status", g.Status, "lag", g.Lag, "ageSeconds", g.ChangeAgeSeconds,
				"desiredReplicas", g.DesiredReplicas, "previousReplicas", previous(decided), "complete", g.Complete)
		}
	}
}

func previous(s state.State) *int {
	if s.Decision == nil {
		return nil
	}
	return s.Decision.Previous
}

// due reports whether a line is to be written: the first in each interval of the clock, and each change.
func (s *samples) due(of state.State, status changefeed.Status, complete bool, replicas *int) bool {
	// A host fires up to some milliseconds early, which must not leave an interval without a line.
	slot := of.AttemptedAt.Round(time.Second).Truncate(s.every)
	now := fmt.Sprint(slot.Unix(), status, complete, replicas != nil, *cmp.Or(replicas, new(int)))
	before, _ := s.last.Swap(of.Processor, now)
	return before != now
}
