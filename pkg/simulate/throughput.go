package simulate

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Container is the throughput of the container that is read and written for the changes. The zero value
// limits nothing.
type Container struct {
	RUPerChange float64 // request units to read a change and to process it, above 0
	RUPerSecond int     // provisioned at the start, and for good where no policy changes it
}

// Limited reports whether there is a limit.
func (c Container) Limited() bool { return c.RUPerChange > 0 && c.RUPerSecond > 0 }

// rangeServes is what one partition serves at most, whatever is provisioned, in request units a second
// (https://learn.microsoft.com/azure/cosmos-db/partitioning-overview#physical-partitions).
const rangeServes = 10_000

// Provisioning is a throughput that follows the replicas (docs/throughput.md).
type Provisioning struct {
	Policy       scaling.ThroughputPolicy
	RUPerReplica float64 // 0 = what the workers of the replay use at their full speed
}

// WithThroughput has a policy of feedscale provision the container of the replay, too. It does nothing
// where that has no limit, nor for another Scaler.
func WithThroughput(s Scaler, p Provisioning) Scaler {
	if of, ok := s.(feedscale); ok {
		of.provisioning = &p
		return of
	}
	return s
}

// meter is the container in a replay. Each partition has its even share of what is provisioned, and what
// it does not use in a second is gone: beyond, requests are answered with 429, and what they were for
// waits.
type meter struct {
	Container
	ranges      int
	provisioned int
	speed       int64 // credits per second and partition
	memory      scaling.ThroughputMemory
	atLimit     bool
	lag         *int64 // at the poll before

	hour      time.Time
	hours     int64 // request units a second of the hours that are over, each by its highest
	highest   int   // of this hour
	peak      int
	throttled time.Duration
}

// newMeter is nil where nothing is limited.
func newMeter(c Container, ranges int) *meter {
	if !c.Limited() {
		return nil
	}
	m := &meter{Container: c, ranges: ranges}
	m.provision(c.RUPerSecond)
	return m
}

// provision takes effect at once, as up to what the present partitions serve it does
// (https://learn.microsoft.com/azure/cosmos-db/scaling-provisioned-throughput-best-practices).
func (m *meter) provision(ruPerSecond int) {
	m.provisioned = ruPerSecond
	share := min(float64(ruPerSecond)/float64(m.ranges), rangeServes)
	m.speed = max(1, int64(math.Min(share/m.RUPerChange, MaxRate)*credit))
	m.highest, m.peak = max(m.highest, ruPerSecond), max(m.peak, ruPerSecond)
}

// allowed is what a lease can be worked off by in a second, in credits.
func (f *fleet) allowed() int64 {
	if f.meter == nil {
		return f.leaseSpeed
	}
	return min(f.leaseSpeed, f.meter.speed)
}

// metered is the end of a second for the container: who was throttled, and what it is billed for. Every
// hour is billed by the highest that was provisioned in it (https://learn.microsoft.com/azure/cosmos-db/understand-your-bill).
func (f *fleet) metered(row int) {
	m := f.meter
	if m == nil {
		return
	}
	m.begin(f.now(row))
	for p := range f.leases {
		if l := &f.leases[p]; l.batch > 0 && l.spare == 0 && m.speed < f.leaseSpeed {
			m.throttled += time.Second
			return
		}
	}
}

// begin ends the hour before, where another one begins.
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

// limit is what holds scale-out at a poll, nil where nothing does.
func (f *fleet) limit() *scaling.Limit {
	if f.meter == nil || !f.meter.atLimit {
		return nil
	}
	return &scaling.Limit{Container: "simulated", RUPerSecond: f.meter.provisioned, LagBefore: f.meter.lag}
}

// follow provisions what a decision needs.
func (f *fleet) follow(row int, p *Provisioning, w scaling.Memory) {
	m := f.meter
	if m == nil || p == nil || w.Replicas == nil {
		return
	}
	m.begin(f.now(row))
	perReplica := p.RUPerReplica
	if perReplica == 0 {
		perReplica = float64(f.speed) / credit * m.RUPerChange
	}
	d, memory := scaling.DecideThroughput(scaling.ThroughputInput{
		Now: f.now(row), Provisioned: scaling.Provisioned{RUPerSecond: m.provisioned}, Before: m.RUPerSecond,
		Demands: []scaling.Demand{{Processor: "simulated", Replicas: *w.Replicas, PerReplica: perReplica}},
		Policy:  p.Policy, Memory: m.memory,
	})
	lag := f.pending
	m.memory, m.lag = memory, &lag
	m.atLimit = d.AtLimit && d.RUPerSecond == m.provisioned
	if d.RUPerSecond != m.provisioned {
		m.provision(d.RUPerSecond)
	}
}

// bill adds to a result what the container cost.
func (r *Result) bill(m *meter) {
	if m == nil {
		return
	}
	r.RUHours, r.PeakRU, r.Throttled = float64(m.hours+int64(m.highest)), m.peak, m.throttled
}
