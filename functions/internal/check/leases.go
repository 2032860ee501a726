package check

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// measure measures, as a tick does, the processors that no line says something against, and says what
// leases they have: a name that nobody uses is well-formed, and can be found only here.
func (c *checker) measure(ctx context.Context, lines []Line) []Line {
	var configured []config.Processor
	var processors []estimator.Processor
	for _, p := range c.config.Processors {
		if slices.ContainsFunc(lines, func(l Line) bool {
			return l.Status == Fail && slices.Contains(l.Processors, p.Name)
		}) {
			continue
		}
		connected, err := c.connections.Processor(p)
		if err != nil {
			continue // the plan has made the same connections
		}
		configured, processors = append(configured, p), append(processors, connected.Processor)
	}
	if len(processors) == 0 {
		return nil
	}
	var lags []changefeed.ProcessorLag
	if ctx.Err() == nil {
		lags = estimator.New(c.config.Settings.Concurrency, time.Now).EstimateAll(ctx, processors)
	}
	var found []Line
	for i, p := range configured {
		s := section{target: "processor " + p.Name, processors: []string{p.Name}}
		s.try("find leases", func(context.Context) finding { return leasesFinding(p, lags[i]) })
		found = append(found, s.run(ctx, 1, "")...)
	}
	return found
}

// leasesFinding says what a measurement found of the leases of a processor: the worst that a tick
// would find, or that later ticks may find.
func leasesFinding(p config.Processor, lag changefeed.ProcessorLag) finding {
	if problem := lag.Problem(); problem != "" {
		return bad("", "%s", problem)
	}
	measured := report.Lookup{State: state.State{Processor: p.Name, AttemptedAt: lag.Time, Lag: lag}}
	found := report.Findings(measured)
	if len(found) > 0 && found[0].Severity == report.Critical {
		return bad(found[0].Remedy, "%s", found[0].Sentence)
	}
	// Only several polls can tell it from a replica of the service that is late (docs/lag.md).
	if i := slices.IndexFunc(lag.Partitions, func(p changefeed.Partition) bool { return p.Beyond() }); i >= 0 {
		p := lag.Partitions[i]
		return doubtful("run feedscale check again after a minute; if it still says so, feedscale explain ahead says what to do",
			"partition %s stands at %d, and its feed has come to %d: the lease is from elsewhere, or a replica of the service is late", p.Lease, *p.CheckpointLSN, *p.SessionLSN)
	}
	if len(found) > 0 && found[0].Severity == report.Warning {
		return doubtful(found[0].Remedy, "%s", found[0].Sentence)
	}
	owned := 0
	for _, l := range lag.Partitions {
		if l.Owner != "" {
			owned++
		}
	}
	return good("%s, %d owned", report.Count(len(lag.Partitions), "lease"), owned)
}
