package console_test

import (
	"io"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// partition is one that was measured.
func partition(lease, owner string, lag, age int64, status changefeed.Status) changefeed.Partition {
	p := changefeed.Partition{Lease: lease, Owner: owner, Lag: &lag, Status: status}
	if lag > 0 {
		p.Age = &age
	}
	return p
}

// unknown is a partition that was not.
func unknown(lease, err string) changefeed.Partition {
	return changefeed.Partition{Lease: lease, Status: changefeed.StatusUnknown, Error: err}
}

// decision is one of a poll at noon. reasons ask for as many replicas each.
func decision(previous *int, direction scaling.Direction, metric int64, reasons ...scaling.Reason) *scaling.Decision {
	last := reasons[len(reasons)-1].Replicas
	return &scaling.Decision{Time: noon, Replicas: last, Previous: previous, Direction: direction, Active: metric > 0, MetricValue: metric, Reasons: reasons}
}

// published is an event of noon that says what was decided, or of some time before.
func published(ago time.Duration, replicas int, active bool) *state.Publication {
	return &state.Publication{Time: noon.Add(-ago), Replicas: replicas, Active: active}
}

// polled has a state for each thing that can be said of a processor.
func polled() []state.State {
	lag := func(charge float64, partitions ...changefeed.Partition) changefeed.ProcessorLag {
		return changefeed.ProcessorLag{Time: noon, Partitions: partitions, Charge: charge, Requests: 4}
	}
	because := func(step string, replicas int, why string) scaling.Reason {
		return scaling.Reason{Step: step, Replicas: replicas, Why: why}
	}
	standing := partition("1", "worker-2", 1_200_000, 7_300, changefeed.StatusStalled)
	standing.Stall = &changefeed.Stall{Kind: changefeed.StallHung, Since: time.Date(2026, 3, 1, 2, 14, 0, 0, time.UTC)}
	approximate := partition("3-4", "", 40, 130, changefeed.StatusSplitting)
	approximate.Approximate, approximate.Ranges = true, 2
	states := []state.State{
		{
			Processor: "first", Lag: lag(2.84, partition("0", "worker-1", 25, 90, changefeed.StatusLagging)),
			Decision: decision(nil, scaling.Out, 10, because("threshold", 1, "lag 25 at 10 per replica, capped to 1 partitions")),
			Sequence: 1, Published: published(0, 1, true),
		},
		{
			Processor: "out", Lag: lag(12.3,
				partition("0", "worker-1", 0, 0, changefeed.StatusOK),
				standing,
				partition("2", "", 30, 119, changefeed.StatusUnclaimed),
				approximate,
				changefeed.Partition{Lease: "5", Owner: "worker-1", Status: changefeed.StatusUncheckpointed, Lag: new(int64(0))},
			),
			Decision: decision(new(2), scaling.Out, 500,
				because("threshold", 8, "lag 1200070 at 100 per replica"), because("partitions", 6, "there are 6 partitions"), because("clamp", 5, "maxReplicaCount is 5")),
			Memory:   scaling.Memory{Arrival: new(20.0), DrainPerReplica: 4, Partitions: 6},
			Sequence: 7, Published: published(0, 5, true),
		},
		{
			Processor: "in", Lag: lag(3, partition("0", "worker-1", 60, 5, changefeed.StatusLagging)),
			Decision: decision(new(9), scaling.In, 60,
				because("threshold", 1, "lag 60 at 100 per replica"), because("stabilization", 4, "4 was asked for within 5m"), because("policies", 4, "at most 5 fewer a minute")),
			Memory:   scaling.Memory{Arrival: new(0.5), DrainPerReplica: 12.34, Partitions: 1},
			Sequence: 8, Published: published(30*time.Minute, 9, true),
		},
		{
			Processor: "idle", Lag: lag(1.5, partition("0", "worker-1", 0, 0, changefeed.StatusOK)),
			Decision: decision(new(0), scaling.None, 0, because("activation", 0, "lag 0 is not above the activation threshold 0")),
			Memory:   scaling.Memory{Arrival: new(0.0), Partitions: 1},
			Sequence: 3, Published: published(time.Hour, 0, false),
		},
		{
			Processor: "paused", Paused: true, Lag: lag(1, partition("0", "worker-1", 3, 2, changefeed.StatusLagging)),
			Decision: decision(new(1), scaling.None, 3, because("paused", 1, "it is paused")),
			Memory:   scaling.Memory{Replicas: new(1), Active: true, MetricValue: 3},
		},
		{
			Processor: "new", Lag: changefeed.ProcessorLag{Time: noon, Bootstrap: true, Charge: 1, Requests: 1},
			Decision: decision(nil, scaling.Out, 1, because("bootstrap", 1, "there is no lease yet")),
		},
		{
			Processor: "partly", Lag: lag(4, partition("0", "worker-1", 7, 3, changefeed.StatusLagging), unknown("1", "account 127.0.0.1 throttles\nhere")),
			Decision: decision(new(1), scaling.None, 7, because("failure", 1, "1 of 2 partitions are unknown: it holds")),
		},
		{
			Processor: "failing", Lag: lag(2, unknown("0", "no answer"), unknown("1", "no answer")),
			Decision: decision(new(2), scaling.None, 5, because("fallback", 2, "3 polls failed")),
		},
		{
			Processor: "broken", Lag: changefeed.ProcessorLag{Time: noon, Error: "it says \"\x1b[31mred\x1b[0m\r\nand a line\": the leases\tcannot be read", Charge: 0},
		},
	}
	for i := range states {
		states[i].AttemptedAt = noon
	}
	return states
}

// groups has one that was decided, and one of which nothing is known.
func groups() []state.State {
	return []state.State{
		{
			Processor: "shop-workers", AttemptedAt: noon, Sequence: 4, Published: published(0, 5, true),
			Members: []state.Member{
				{Processor: "out", Replicas: new(5), Active: true, Totals: changefeed.Totals{Lag: new(int64(70)), Partitions: new(6), Complete: true, Status: changefeed.StatusLagging}},
				{Processor: "idle", Replicas: new(0), Totals: changefeed.Totals{Lag: new(int64(0)), Partitions: new(1), Complete: true, Status: changefeed.StatusOK}},
			},
			Decision: decision(new(2), scaling.Out, 5, scaling.Reason{Step: "group", Replicas: 5, Why: "out asks for the most of 2 members"}),
		},
		{
			Processor: "dark", AttemptedAt: noon,
			Members: []state.Member{{Processor: "broken", Totals: changefeed.Totals{Status: changefeed.StatusUnknown}}},
		},
	}
}

func TestTheTableHasALineForEachProcessorAndOneForEachError(t *testing.T) {
	t.Parallel()
	golden(t, "processors", func(w io.Writer, style console.Style) error {
		return console.WriteProcessors(w, polled(), groups(), false, style)
	})
}

func TestTheTableHasPartitionsBelowTheirProcessor(t *testing.T) {
	t.Parallel()
	golden(t, "partitions", func(w io.Writer, style console.Style) error {
		return console.WriteProcessors(w, polled(), groups(), true, style)
	})
}

func TestADecisionIsExplainedFromWhatWasMeasuredToWhatIsPublished(t *testing.T) {
	t.Parallel()
	golden(t, "explanations", func(w io.Writer, style console.Style) error {
		return console.WriteExplanations(w, append(polled(), groups()...), false, style)
	})
	golden(t, "explanations-dry-run", func(w io.Writer, style console.Style) error {
		return console.WriteExplanations(w, polled()[:1], true, style)
	})
}

func TestTheJSONHasEveryFieldOfEveryProcessor(t *testing.T) {
	t.Parallel()
	golden(t, "processors-json", func(w io.Writer, _ console.Style) error {
		return console.WriteProcessorsJSON(w, polled()[:1], groups())
	})
}
