package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
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
	var unknown *int // what is unknown is null
	if p.PartitionCount != nil {
		unknown = new(0)
		for i := range polled.Lag.Partitions {
			if !polled.Lag.Partitions[i].Known() {
				*unknown++
			}
		}
	}
	var left *int64
	if p.RetentionSeconds != nil && p.ChangeAgeSeconds != nil {
		left = new(*p.RetentionSeconds - *p.ChangeAgeSeconds)
	}
	s.write(polled, &p.Name, p.Group, p.Subject,
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
		s.write(decided, nil, &g.Name, g.Subject)
	}
}

// write logs a line if one is due: the first in each interval of the clock, and each change.
func (s *samples) write(of state.State, processor, group *string, shown report.Subject, more ...any) {
	// A host fires up to some milliseconds early, which must not leave an interval without a line.
	slot := of.AttemptedAt.Round(time.Second).Truncate(s.every)
	replicas, decision := shown.DesiredReplicas, cmp.Or(of.Decision, new(scaling.Decision))
	now := fmt.Sprint(slot.Unix(), shown.Status, shown.Complete, replicas != nil, decision.Replicas)
	if before, _ := s.last.Swap(of.Processor, now); before == now {
		return
	}
	s.log.Info("sample", append([]any{
		"processor", processor, "group", group, "status", shown.Status, "lag", shown.Lag, "ageSeconds", shown.ChangeAgeSeconds,
		"desiredReplicas", replicas, "previousReplicas", decision.Previous, "complete", shown.Complete,
	}, more...)...)
}
