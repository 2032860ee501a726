package scaling

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ThroughputPolicy bounds the throughput of one container (docs/throughput.md).
type ThroughputPolicy struct {
	Min            int           // request units a second; 0 = what was there before the first change
	Max            int           // what it is never raised above, at least Min
	ScaleDownAfter time.Duration // less has to be enough for so long before it is lowered
}

// Provisioned is the throughput of a container as the service told it.
type Provisioned struct {
	RUPerSecond int  // of autoscaled throughput its maximum
	Autoscale   bool // it scales itself below RUPerSecond
	Minimum     int  // the least that the service allows; 0 where it does not say
	Pending     bool // a change of it is under way
}

// step is what throughput is a multiple of (https://learn.microsoft.com/azure/cosmos-db/concepts-limits).
func (p Provisioned) step() int {
	if p.Autoscale {
		return 1000
	}
	return 100
}

// roundUp rounds up to a step.
func (p Provisioned) roundUp(n float64) int {
	return int(math.Ceil(min(n, math.MaxInt32)/float64(p.step()))) * p.step()
}

// Demand is what one processor needs of a container.
type Demand struct {
	Processor  string  // its name
	Replicas   int     // that it is to have
	PerReplica float64 // request units a second that each of them uses; 0 where that is not known
	Undecided  bool    // it is not known how many replicas it is to have
}

// ThroughputMemory is what a decision about a container leaves for the next one.
type ThroughputMemory struct {
	Lower time.Time `json:"lower,omitzero"` // since when less than what is provisioned is enough; zero while it is not
	Most  int       `json:"most,omitempty"` // request units a second: the most that was enough since then
}

// ThroughputInput is everything that a decision about a container's throughput depends on.
type ThroughputInput struct {
	Now         time.Time
	Provisioned Provisioned
	Before      int      // what was provisioned before the first change; 0 = nothing was changed
	Demands     []Demand // of all processors that name the container
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

// ThroughputDecision says what a container's throughput is to be, and why.
type ThroughputDecision struct {
	RUPerSecond int                `json:"ruPerSecond"` // to provision; of autoscaled throughput the maximum
	Provisioned int                `json:"provisioned"` // there was when it was decided
	Autoscale   bool               `json:"autoscale"`
	Needed      *int               `json:"needed"`  // by the replicas wanted, before every bound; nil where that is not known of all of them
	AtLimit     bool               `json:"atLimit"` // they need more than what it may be raised to
	Reasons     []ThroughputReason `json:"reasons"`
}

// Why returns all reasons in one line.
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

// demand is step 1: what the replicas need that the processors are to have, in the steps of the service. It
// returns of how many processors that is not known.
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

// bound is steps 2 and 3: never above max, nor below min and what the service allows, which win.
func (d *ThroughputDecision) bound(in ThroughputInput) {
	p := in.Provisioned
	if most := in.Policy.Max / p.step() * p.step(); d.RUPerSecond > most {
		d.because("max", most, "max is %d", in.Policy.Max)
	}
	least, why := in.Policy.Min, "min"
	switch {
	case least > 0:
	case in.Before > 0:
		least, why = in.Before, "what was there before the first change"
	default:
		least, why = p.RUPerSecond, "what is there"
	}
	if least = p.roundUp(float64(least)); d.RUPerSecond < least {
		d.because("min", least, "%s is %d", why, least)
	}
	if least = p.roundUp(float64(p.Minimum)); d.RUPerSecond < least {
		d.because("min", least, "the service allows no less than %d", least)
	}
}

// settle is steps 4 to 6: what is to be changed now. Up is at once, before the replicas that need it are
// there; down takes its time, since an hour is billed by its highest throughput.
func (d *ThroughputDecision) settle(in ThroughputInput, unknown int) (next ThroughputMemory) {
	wanted, now, pending := d.RUPerSecond, d.Provisioned, in.Provisioned.Pending
	if wanted < now && unknown == 0 {
		next = ThroughputMemory{Lower: in.Memory.Lower, Most: max(in.Memory.Most, wanted)}
		if next.Lower.After(in.Now) { // by a clock that was ahead
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

// Limit says that a container of a processor is at its limit: its throughput cannot be raised further.
type Limit struct {
	Container   string // DATABASE/ID
	RUPerSecond int
	LagBefore   *int64 // of the poll before, in transactions; nil where it was not known
}
