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

// throughputSteps carries a decision from step to step.
type throughputSteps struct {
	ThroughputInput
	ThroughputDecision
	next    ThroughputMemory
	needed  int
	unknown int // demands of which it is not known what a replica uses
}

// DecideThroughput takes the steps of docs/throughput.md in their order: 1 demand, 2 max, 3 min, 4
// scaleDownAfter, 5 pending, 6 unknown. The same input always gives the same decision.
func DecideThroughput(in ThroughputInput) (ThroughputDecision, ThroughputMemory) {
	s := throughputSteps{ThroughputInput: in}
	s.ThroughputDecision.Provisioned, s.Autoscale = in.Provisioned.RUPerSecond, in.Provisioned.Autoscale
	s.demand()
	s.bound()
	s.settle()
	return s.ThroughputDecision, s.next
}

func (s *throughputSteps) because(step, why string, args ...any) {
	s.Reasons = append(s.Reasons, ThroughputReason{Step: step, RUPerSecond: s.RUPerSecond, Why: fmt.Sprintf(why, args...)})
}

// demand is step 1: what the replicas need that the processors are to have, summed over the processors,
// in the steps of the service.
func (s *throughputSteps) demand() {
	sum := 0.0
	for _, d := range s.Demands {
		switch {
		case d.Undecided:
			s.unknown++
		case d.Replicas == 0:
		case d.PerReplica <= 0:
			s.unknown++
		default:
			sum += float64(d.Replicas) * d.PerReplica
		}
		s.RUPerSecond = s.rounded(sum)
		switch {
		case d.Undecided:
			s.because("demand", "what %s wants is not known", d.Processor)
		case d.Replicas == 0:
			s.because("demand", "%s needs nothing for 0 replicas", d.Processor)
		case d.PerReplica <= 0:
			s.because("demand", "%s wants %d replicas, and what one uses is not known: set ruPerReplica", d.Processor, d.Replicas)
		default:
			s.because("demand", "%s needs %d x %.4g RU/s", d.Processor, d.Replicas, d.PerReplica)
		}
	}
	s.needed = s.RUPerSecond
	if s.unknown == 0 {
		s.Needed = new(s.needed)
	}
}

// rounded rounds up to the service's step.
func (s *throughputSteps) rounded(n float64) int {
	step := s.ThroughputInput.Provisioned.step()
	return int(math.Ceil(min(n, math.MaxInt32)/float64(step))) * step
}

// bound is steps 2 and 3: never above max, nor below min and what the service allows, which win.
func (s *throughputSteps) bound() {
	step := s.ThroughputInput.Provisioned.step()
	if most := s.Policy.Max / step * step; s.RUPerSecond > most {
		s.RUPerSecond = most
		s.because("max", "max is %d", s.Policy.Max)
	}
	least, why := s.Policy.Min, "min"
	if least == 0 {
		least, why = s.Before, "what was there before the first change"
		if least == 0 {
			least, why = s.ThroughputInput.Provisioned.RUPerSecond, "what is there"
		}
	}
	if least = s.rounded(float64(least)); s.RUPerSecond < least {
		s.RUPerSecond = least
		s.because("min", "%s is %d", why, least)
	}
	if least := s.rounded(float64(s.ThroughputInput.Provisioned.Minimum)); s.RUPerSecond < least {
		s.RUPerSecond = least
		s.because("min", "the service allows no less than %d", least)
	}
	s.AtLimit = s.needed > s.RUPerSecond
}

// settle is steps 4 to 6: what is to be changed now. Up is at once, before the replicas that need it
// are there; down takes its time, since an hour is billed by its highest throughput, and each change
// takes requests of its own.
func (s *throughputSteps) settle() {
	wanted, now := s.RUPerSecond, s.ThroughputInput.Provisioned.RUPerSecond
	pending := s.ThroughputInput.Provisioned.Pending
	stay := func(step, why string, args ...any) {
		s.RUPerSecond = now
		s.because(step, why, args...)
	}
	if wanted < now && s.unknown == 0 {
		since, most := earlier(s.Memory.Lower, s.Now), max(s.Memory.Most, wanted)
		if s.Memory.Lower.IsZero() || most >= now {
			since, most = s.Now, wanted
		}
		if lasted := s.Now.Sub(since); pending || lasted < s.Policy.ScaleDownAfter {
			s.next = ThroughputMemory{Lower: since, Most: most}
			if !pending {
				stay("scaleDownAfter", "lowered once less was enough for %s, %s so far", s.Policy.ScaleDownAfter, lasted.Round(time.Second))
				return
			}
		} else if s.RUPerSecond = most; most > wanted {
			s.because("scaleDownAfter", "the most that was needed in the last %s", s.Policy.ScaleDownAfter)
		}
	}
	switch {
	case s.RUPerSecond == now:
	case pending:
		stay("pending", "a change to %d is under way", now)
	case wanted < now && s.unknown > 0:
		stay("unknown", "what %d processors need is not known: it is not lowered", s.unknown)
	}
}

// Limit says that a container of a processor is at its limit: its throughput cannot be raised further.
type Limit struct {
	Container   string // DATABASE/ID
	RUPerSecond int
	LagBefore   *int64 // of the poll before, in transactions; nil where it was not known
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}
