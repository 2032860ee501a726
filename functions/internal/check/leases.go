package check

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/report"
)

// measure measures, as a tick does, the processors that no line says something against, and says what
// leases they have: a name that nobody uses is well-formed, and can be found only here.
func (c *checker) measure(ctx context.Context, lines []Line) []Line {
	var (
		configured []config.Processor
		processors []estimator.Processor
	)
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
		s.try(ctx, "find leases", func(context.Context) finding { return leasesFinding(p, lags[i]) })
		found = append(found, s.lines...)
	}
	return found
}

// leasesFinding says what a measurement found of the leases of a processor.
func leasesFinding(p config.Processor, lag changefeed.ProcessorLag) finding {
	switch {
	case lag.Problem() != "":
		return bad("", "%s", lag.Problem())
	case lag.Nearest != "":
		return bad("correct processorName, accountHost or leaseContainerId of "+p.Name+" in the processors file", "no lease is its own. %s", lag.Nearest)
	case lag.Bootstrap:
		return doubtful("start the processor once; if it has run, correct leaseContainerId",
			"the lease container holds no leases: the processor has never run, or keeps its leases elsewhere")
	}
	uncheckpointed, owned := 0, 0
	for _, l := range lag.Partitions {
		if l.Status == changefeed.StatusUncheckpointed {
			uncheckpointed++
		}
		if l.Owner != "" {
			owned++
		}
	}
	if uncheckpointed > 0 {
		return doubtful("let each partition see a first change, or start the processor from the beginning (docs/lag.md)",
			"%d of %s never checkpointed: the position is in the memory of the owner alone, and what is written while no replica runs, or a lease moves, is skipped for good", uncheckpointed, report.Count(len(lag.Partitions), "partition"))
	}
	return good("%s, %d owned", report.Count(len(lag.Partitions), "lease"), owned)
}
