package main

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// Container is the throughput of the container that is read and written for the changes. The zero
// value limits nothing.
type Container struct {
	RUPerChange float64 // request units to read a change and to process it, above 0
	RUPerSecond int     // provisioned at the start, and for good without Follow
	// Follow has the throughput follow the replicas (docs/throughput.md), each of which uses what it
	// does at its full speed; nil = it stays.
	Follow *scaling.ThroughputPolicy
}

// limited reports whether there is a limit.
func (c Container) limited() bool { return c.RUPerChange > 0 && c.RUPerSecond > 0 }

// rangeServes is what one partition serves at most, whatever is provisioned, in request units a second
// (https://learn.microsoft.com/azure/cosmos-db/partitioning-overview#physical-partitions).
const rangeServes = 10_000

// meter is a Scaler on a container, for one replay. Each partition has its even share of what is
// provisioned, and what it does not use in a second is gone: beyond, requests are answered with 429,
// and what they were for waits.
type meter struct {
	simulate.Scaler
	Container
	trace       simulate.Trace
	perReplica  float64 // request units a second
	replay      *simulate.Replay
	provisioned int
	limit       *scaling.Limit // that holds scale-out at the next decision
	memory      scaling.ThroughputMemory

	hour    time.Time
	hours   int64 // request units a second of the hours that are over, each by its highest
	highest int   // of this hour
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

// provision takes effect at once, as up to what the present partitions serve it does
// (https://learn.microsoft.com/azure/cosmos-db/scaling-provisioned-throughput-best-practices).
func (m *meter) provision(ruPerSecond int) {
	m.provisioned = ruPerSecond
	share := min(float64(ruPerSecond)/float64(m.trace.Partitions), rangeServes)
	m.replay.SetLeaseLimit(min(share/m.RUPerChange, simulate.MaxRate))
	m.highest, m.peak = max(m.highest, ruPerSecond), max(m.peak, ruPerSecond)
}

// begin ends the hour before, if another one begins. Every hour is billed by the highest that was
// provisioned in it (https://learn.microsoft.com/azure/cosmos-db/understand-your-bill).
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

// follow provisions what a decision needs.
func (m *meter) follow(in scaling.Input, decided scaling.Memory) {
	if decided.Replicas == nil {
		return
	}
	d, memory := scaling.DecideThroughput(scaling.ThroughputInput{
		Now: in.Now, Provisioned: scaling.Provisioned{RUPerSecond: m.provisioned}, Before: m.RUPerSecond,
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

// ruHours is what the container was billed for, in RU/s-hours.
func (m *meter) ruHours() float64 { return float64(m.hours + int64(m.highest)) }
