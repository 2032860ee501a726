package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
	"github.com/feedscale/feedscale/pkg/state"
)

// polled is when the states of these tests were measured.
func polled() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC) }

// small is a State that differs from that of every other sequence.
func small(processor string, sequence int64) state.State {
	return state.State{Processor: processor, AttemptedAt: polled(), Sequence: sequence}
}

// full is a State with every field set and a number of partitions. Their numbers, positions and
// hosts are random, so that no store can rely on compression.
func full(processor string, partitions int) state.State {
	random := rand.New(rand.NewPCG(1, 2))
	replicas, previous := 5, 3
	full := state.State{
		Processor:   processor,
		AttemptedAt: polled().Add(time.Minute),
		PolledAt:    polled(),
		Lag:         changefeed.ProcessorLag{Time: polled(), Error: "a quote ', a \"string\", ünïcödé 😀 and\na line", Charge: 12.5, Requests: partitions},
		Decision: &scaling.Decision{
			Time: polled(), Replicas: replicas, Previous: &previous, Direction: scaling.Out, Active: true,
			MetricValue: 1 << 60, // beyond what a float64 holds exactly
			Reasons:     []scaling.Reason{{Step: "threshold", Replicas: replicas, Why: "lag 412 at 100 per replica"}},
		},
		Memory: scaling.Memory{
			Replicas: &replicas, Active: true, MetricValue: 412, LastActive: polled(), Partitions: partitions,
			Recommendations: []scaling.Recommendation{{Time: polled(), Replicas: replicas}},
			Changes:         []scaling.Change{{Time: polled(), Delta: -2}},
		},
		Sequence:  42,
		Published: &state.Publication{Time: polled(), Replicas: replicas, Active: true},
		Paused:    true,
	}
	full.Health, full.Memory.Sizing.Partitions = health.Memory{}, map[string]sizing.Partition{}
	for i := range partitions {
		lag, age := random.Int64N(1_000_000), random.Int64N(100_000)
		session := 1_000_000_000 + random.Int64N(1_000_000_000)
		checkpoint := session - lag
		measured := changefeed.Partition{
			Lease:         fmt.Sprintf("%d", i),
			Range:         &changefeed.Range{Min: fmt.Sprintf("%014X", i<<40), Max: fmt.Sprintf("%014X", (i+1)<<40)},
			Owner:         fmt.Sprintf("projection-%08x-%05x", random.Uint32(), random.Uint32N(1<<20)),
			Lag:           &lag,
			Age:           &age,
			Status:        changefeed.StatusLagging,
			LeaseTime:     polled().Add(-time.Duration(random.Int64N(int64(time.Minute)))),
			SessionLSN:    &session,
			CheckpointLSN: &checkpoint,
			Position:      fmt.Sprintf("%q", fmt.Sprint(checkpoint)),
		}
		full.Lag.Partitions = append(full.Lag.Partitions, measured)
		full.Health[measured.Lease] = health.Progress{
			Position: measured.Position, Since: polled().Add(-time.Hour), Time: polled(),
			SessionLSN: session, CheckpointLSN: checkpoint, Lag: &lag, Pending: lag > 0,
		}
		full.Memory.Sizing.Partitions[measured.Lease] = sizing.Partition{
			Time: polled(), Known: true, Arrival: float64(random.IntN(1000)) / 4, Session: session, Checkpoint: checkpoint,
		}
	}
	return full
}

// brief is a State as a test's message shows it.
func brief(s state.State) string {
	const enough = 500
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	if len(text) > enough {
		return fmt.Sprintf("%s... (%d bytes)", text[:enough], len(text))
	}
	return string(text)
}
