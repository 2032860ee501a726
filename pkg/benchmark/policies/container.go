package main

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// Container is the throughput of the container whose changes are read and processed. The zero value
// has no limit.
type Container struct {
	RUPerChange float64 // request units to read and process one change, above 0
	RUPerSecond int     // provisioned at the start; without Follow it never changes
	// Follow changes the throughput with the number of replicas (docs/throughput.md), each at its
	// full speed; nil = it never changes.
	Follow *scaling.ThroughputPolicy
}

// limited reports whether there is a limit.
func (c Container) limited() bool { return c.RUPerChange > 0 && c.RUPerSecond > 0 }

// rangeServes is the most that one partition serves, in request units a second
// (https://learn.microsoft.com/azure/cosmos-db/partitioning-overview#physical-partitions).
const rangeServes = 10_000

// meter is a Scaler on a container, for one replay. Each partition has an equal share of the
// throughput, and cannot save what it does not use in a second. Requests beyond the share get a
// 429, and their changes wait.
type meter struct {
	simulate.Scaler
	Container
	trace       simulate.Trace
	perReplica  float64 // request units a second
	replay      *simulate.Replay
	provisioned int
	limit       *scaling.Limit // holds back scale-out at the next decision
	memory      scaling.ThroughputMemory

	hour    time.Time
	hours   int64 // request units a second, summed over the past hours, each by its highest
	highest int   // of the current hour
	peak    int
}

func newMeter(s simulate.Scaler, c Container, t simulate.Trace, w simulate.Workers) *meter {
	return &meter{Scaler: s, Container: c, trace: t, perReplica: w.Throughput * c.RUPerChange}
}

// Begin joins the replay.
func (m *meter) Begin(r *simulate.Replay) func(second int) int {
	m.replay = r
	m.provision(m.RUPerSecond)
	if decide := r.Decide; m.Follow != nil {
		r.Decide = func(in scaling.Input) scaling.Memory {
			in.Limit = m.limit
			memory := decide(in)
			m.follow(in, memory)
			return memory
		}
	}
	replicas := m.Scaler.Begin(r)
	return func(second int) int {
		m.begin(m.trace.Start.Add(time.Duration(second) * time.Second))
		return replicas(second)
	}
}

// provision takes effect at once, as the service does up to what the present partitions serve
// (https://learn.microsoft.com/azure/cosmos-db/scaling-provisioned-throughput-best-practices).
func (m *meter) provision(ruPerSecond int) {
	m.provisioned = ruPerSecond
	share := min(float64(ruPerSecond)/float64(m.trace.Partitions), rangeServes)
	m.replay.SetLeaseLimit(min(share/m.RUPerChange, simulate.MaxRate))
	m.highest, m.peak = max(m.highest, ruPerSecond), max(m.peak, ruPerSecond)
}

// begin closes the last hour when a new one begins. An hour is billed by its highest throughput
// (https://learn.microsoft.com/azure/cosmos-db/understand-your-bill).
func (m *meter) begin(now time.Time) {
	hour := now.Truncate(time.Hour)
	if !hour.After(m.hour) {
		return
	}
	if !m.hour.IsZero() {
		m.hours += int64(m.highest)
		m.highest = m.provisioned
	}
	m.hour = hour
}

// follow provisions what a decision's replicas need.
func (m *meter) follow(in scaling.Input, decided scaling.Memory) {
	if decided.Replicas == nil {
		return
	}
	d, memory := scaling.DecideThroughput(scaling.ThroughputInput{
		Now: in.Now, Provisioned: scaling.ProvisionedThroughput{RUPerSecond: m.provisioned}, Before: m.RUPerSecond,
		Demands: []scaling.Demand{{Processor: "simulated", Replicas: *decided.Replicas, PerReplica: m.perReplica}},
		Policy:  *m.Follow, Memory: m.memory,
	})
	m.memory, m.limit = memory, nil
	if d.AtLimit && d.RUPerSecond == m.provisioned {
		m.limit = &scaling.Limit{Container: "simulated", RUPerSecond: m.provisioned, LagBefore: in.Lag.Lag()}
	}
	if d.RUPerSecond != m.provisioned {
		m.provision(d.RUPerSecond)
	}
}

// ruHours returns the billed RU/s-hours of the container.
func (m *meter) ruHours() float64 { return float64(m.hours + int64(m.highest)) }
