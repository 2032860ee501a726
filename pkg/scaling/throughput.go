package scaling

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// ThroughputPolicy bounds the throughput of one container (docs/throughput.md).
type ThroughputPolicy struct {
	Min            int           // request units a second; 0 = the throughput before the first change
	Max            int           // upper bound of what feedscale sets, request units a second; at least Min
	ScaleDownAfter time.Duration // how long less must be enough before it is lowered
}

// ProvisionedThroughput is the throughput of a container, as the service reports it.
type ProvisionedThroughput struct {
	RUPerSecond int  // with autoscale, the maximum
	Autoscale   bool // it scales itself below RUPerSecond
	Minimum     int  // lowest value that the service allows; 0 if it does not say
	Pending     bool // an earlier change is still under way
}

// step is the unit in which throughput is provisioned
// (https://learn.microsoft.com/azure/cosmos-db/concepts-limits).
func (p ProvisionedThroughput) step() int {
	if p.Autoscale {
		return 1000
	}
	return 100
}

// roundUp rounds up to the next step.
func (p ProvisionedThroughput) roundUp(n float64) int {
	return int(math.Ceil(min(n, math.MaxInt32)/float64(p.step()))) * p.step()
}

// Demand is what one processor needs from a container.
type Demand struct {
	Processor  string  // its name
	Replicas   int     // that were decided for it
	PerReplica float64 // request units a second of one replica; 0 if unknown
	Undecided  bool    // its replicas are unknown
}

// ThroughputMemory is the input that a decision about a container leaves for the next one.
type ThroughputMemory struct {
	Lower time.Time `json:"lower,omitzero"` // since when less than is provisioned is enough; zero if it is not
	Most  int       `json:"most,omitempty"` // request units a second: the highest need since Lower
}

// ThroughputInput is everything that a decision about a container's throughput depends on.
type ThroughputInput struct {
	Now         time.Time
	Provisioned ProvisionedThroughput
	Before      int      // provisioned before the first change; 0 = feedscale changed nothing
	Demands     []Demand // of every processor that names the container
	Policy      ThroughputPolicy
	Memory      ThroughputMemory
}

// ThroughputReason is one step of a decision about throughput: its name, the request units a second
// after it, and a sentence for the operator.
type ThroughputReason struct {
	Step        string `json:"step"`
	RUPerSecond int    `json:"ruPerSecond"`
	Why         string `json:"why"`
}

// ThroughputDecision says what throughput a container should have, and why.
type ThroughputDecision struct {
	RUPerSecond int  `json:"ruPerSecond"` // to provision; with autoscale, the maximum
	Provisioned int  `json:"provisioned"` // at the time of the decision
	Autoscale   bool `json:"autoscale"`
	// by the decided replicas, before any bound; nil if it is unknown of one of them
	Needed  *int               `json:"needed"`
	AtLimit bool               `json:"atLimit"` // they need more than Policy.Max allows
	Reasons []ThroughputReason `json:"reasons"`
}

// Why joins the sentences of all reasons.
func (d ThroughputDecision) Why() string {
	text := make([]string, len(d.Reasons))
	for i, r := range d.Reasons {
		text[i] = r.Why
	}
	return strings.Join(text, "; ")
}

func (d *ThroughputDecision) because(step string, ruPerSecond int, why string, args ...any) {
	d.RUPerSecond = ruPerSecond
	d.Reasons = append(d.Reasons, ThroughputReason{Step: step, RUPerSecond: ruPerSecond, Why: fmt.Sprintf(why, args...)})
}

// DecideThroughput takes the steps of docs/throughput.md in their order: 1 demand, 2 max, 3 min, 4
// scaleDownAfter, 5 pending, 6 unknown. The same input always gives the same decision.
func DecideThroughput(in ThroughputInput) (ThroughputDecision, ThroughputMemory) {
	d := ThroughputDecision{Provisioned: in.Provisioned.RUPerSecond, Autoscale: in.Provisioned.Autoscale}
	unknown := d.demand(in)
	needed := d.RUPerSecond
	if unknown == 0 {
		d.Needed = &needed
	}
	d.bound(in)
	d.AtLimit = needed > d.RUPerSecond
	return d, d.settle(in, unknown)
}

// demand is step 1: the throughput that the decided replicas need, rounded up to the service's
// step. It returns how many processors have an unknown need.
func (d *ThroughputDecision) demand(in ThroughputInput) (unknown int) {
	sum := 0.0
	for _, p := range in.Demands {
		why := ""
		switch {
		case p.Undecided:
			unknown++
			why = fmt.Sprintf("what %s wants is not known", p.Processor)
		case p.Replicas == 0:
			why = fmt.Sprintf("%s needs nothing for 0 replicas", p.Processor)
		case p.PerReplica <= 0:
			unknown++
			why = fmt.Sprintf("%s wants %d replicas, and what one uses is not known: set ruPerReplica", p.Processor, p.Replicas)
		default:
			sum += float64(p.Replicas) * p.PerReplica
			why = fmt.Sprintf("%s needs %d x %.4g RU/s", p.Processor, p.Replicas, p.PerReplica)
		}
		d.because("demand", in.Provisioned.roundUp(sum), "%s", why)
	}
	return unknown
}

// bound is steps 2 and 3: at most max, at least min and what the service allows. The minimum wins.
func (d *ThroughputDecision) bound(in ThroughputInput) {
	p := in.Provisioned
	if most := in.Policy.Max / p.step() * p.step(); d.RUPerSecond > most {
		d.because("max", most, "max is %d", in.Policy.Max)
	}
	least := p.roundUp(float64(cmp.Or(in.Policy.Min, in.Before, p.RUPerSecond)))
	if d.RUPerSecond < least {
		d.because("min", least, "min, or else what was found before the first change, is %d", least)
	}
	if least = p.roundUp(float64(p.Minimum)); d.RUPerSecond < least {
		d.because("min", least, "the service allows no less than %d", least)
	}
}

// settle is steps 4 to 6. It raises at once, so that the throughput is there before the replicas.
// It lowers only after scaleDownAfter, since an hour is billed by its highest throughput.
func (d *ThroughputDecision) settle(in ThroughputInput, unknown int) (next ThroughputMemory) {
	wanted, now, pending := d.RUPerSecond, d.Provisioned, in.Provisioned.Pending
	if wanted < now && unknown == 0 {
		next = ThroughputMemory{Lower: in.Memory.Lower, Most: max(in.Memory.Most, wanted)}
		if next.Lower.After(in.Now) { // the clock was ahead
			next.Lower = in.Now
		}
		if in.Memory.Lower.IsZero() || next.Most >= now {
			next = ThroughputMemory{Lower: in.Now, Most: wanted}
		}
		switch lasted := in.Now.Sub(next.Lower); {
		case pending:
		case lasted < in.Policy.ScaleDownAfter:
			d.because("scaleDownAfter", now, "lowered once less was enough for %s, %s so far", in.Policy.ScaleDownAfter, lasted.Round(time.Second))
		default:
			if next.Most > wanted {
				d.because("scaleDownAfter", next.Most, "the most that was needed in the last %s", in.Policy.ScaleDownAfter)
			}
			next = ThroughputMemory{}
		}
	}
	switch {
	case d.RUPerSecond == now:
	case pending:
		d.because("pending", now, "a change to %d is under way", now)
	case wanted < now && unknown > 0:
		d.because("unknown", now, "what %d processors need is not known: it is not lowered", unknown)
	}
	return next
}

// Limit is a container of a processor whose throughput cannot be raised further.
type Limit struct {
	Container   string // DATABASE/ID
	RUPerSecond int
	LagBefore   *int64 // lag at the last poll, in transactions; nil if unknown
}
