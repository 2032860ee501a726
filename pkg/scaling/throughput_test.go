package scaling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// noon is the time of the decisions in these tests.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// shownThroughput is a decision in one line: the throughput, and the step of each reason.
func shownThroughput(d scaling.ThroughputDecision) string {
	text := fmt.Sprint(d.RUPerSecond)
	if d.AtLimit {
		text += " at its limit"
	}
	var steps []string
	for _, r := range d.Reasons {
		steps = append(steps, fmt.Sprintf("%s=%d", r.Step, r.RUPerSecond))
	}
	return text + " [" + strings.Join(steps, " ") + "]"
}

// TestThroughput is every step of DecideThroughput.
func TestThroughput(t *testing.T) {
	t.Parallel()
	type demands = []scaling.Demand
	orders := func(replicas int, each float64) scaling.Demand {
		return scaling.Demand{Processor: "orders", Replicas: replicas, PerReplica: each}
	}
	mails := func(replicas int, each float64) scaling.Demand {
		return scaling.Demand{Processor: "mails", Replicas: replicas, PerReplica: each}
	}
	manual := func(n int) scaling.ProvisionedThroughput {
		return scaling.ProvisionedThroughput{RUPerSecond: n, Minimum: 400}
	}
	auto := func(n int) scaling.ProvisionedThroughput {
		return scaling.ProvisionedThroughput{RUPerSecond: n, Autoscale: true, Minimum: 1000}
	}
	within := func(low, high int) scaling.ThroughputPolicy {
		return scaling.ThroughputPolicy{Min: low, Max: high, ScaleDownAfter: time.Hour}
	}
	for _, c := range []struct {
		rule        string
		provisioned scaling.ProvisionedThroughput
		before      int
		demands     demands
		policy      scaling.ThroughputPolicy
		lower       time.Duration // how long less has been enough; 0 = not yet
		most        int
		want        string
	}{
		{"replicas times what one uses, in steps of 100", manual(400), 0, demands{orders(5, 250)}, within(400, 10_000), 0, 0, "1300 [demand=1300]"},
		{"autoscaled throughput in steps of 1,000 of its maximum", auto(1000), 0, demands{orders(5, 250)}, within(1000, 10_000), 0, 0, "2000 [demand=2000]"},
		{"several processors on one container add up", manual(400), 0, demands{orders(5, 250), mails(2, 100)}, within(400, 10_000), 0, 0, "1500 [demand=1300 demand=1500]"},
		{"and are rounded once", manual(400), 0, demands{orders(1, 410), mails(1, 10), {Processor: "bills", Replicas: 1, PerReplica: 10}}, within(400, 10_000), 0, 0, "500 [demand=500 demand=500 demand=500]"},
		{"never above max", manual(400), 0, demands{orders(100, 250)}, within(400, 10_000), 0, 0, "10000 at its limit [demand=25000 max=10000]"},
		{"max in steps of 1,000 for autoscaled throughput", auto(1000), 0, demands{orders(100, 250)}, within(1000, 4500), 0, 0, "4000 at its limit [demand=25000 max=4000]"},
		{"exactly max is no limit", manual(400), 0, demands{orders(4, 1000)}, within(400, 4000), 0, 0, "4000 [demand=4000]"},
		{"never below min", manual(1000), 0, nil, within(1000, 10_000), 0, 0, "1000 [min=1000]"},
		{"without min, never below what was found", manual(1500), 1000, demands{orders(1, 1200)}, within(0, 10_000), 2 * time.Hour, 1200, "1200 [demand=1200]"},
		{"nor while nothing was changed yet", manual(1500), 0, demands{orders(1, 100)}, within(0, 10_000), 2 * time.Hour, 100, "1500 [demand=100 min=1500]"},
		{"what was found may be above max: it is not lowered to that", manual(20_000), 0, demands{orders(1, 100)}, within(0, 10_000), 0, 0, "20000 [demand=100 min=20000]"},
		{"never below what the service allows", scaling.ProvisionedThroughput{RUPerSecond: 9000, Minimum: 700}, 0, demands{orders(1, 100)}, within(400, 10_000), 2 * time.Hour, 700, "700 [demand=100 min=400 min=700]"},
		{"even above max", scaling.ProvisionedThroughput{RUPerSecond: 700, Minimum: 700}, 0, nil, within(400, 500), 0, 0, "700 [min=400 min=700]"},
		{"lower only after scaleDownAfter", manual(2000), 0, demands{orders(1, 500)}, within(400, 10_000), 59 * time.Minute, 500, "2000 [demand=500 scaleDownAfter=2000]"},
		{"which begins when less is enough", manual(2000), 0, demands{orders(1, 500)}, within(400, 10_000), 0, 0, "2000 [demand=500 scaleDownAfter=2000]"},
		{"then to what is needed", manual(2000), 0, demands{orders(1, 500)}, within(400, 10_000), time.Hour, 500, "500 [demand=500]"},
		{"or to the most that was needed meanwhile", manual(2000), 0, demands{orders(1, 500)}, within(400, 10_000), time.Hour, 900, "900 [demand=500 scaleDownAfter=900]"},
		{"a clock that was ahead holds nothing for longer", manual(2000), 0, demands{orders(1, 500)}, within(400, 10_000), -time.Hour, 500, "2000 [demand=500 scaleDownAfter=2000]"},
		{"what somebody lowered below that begins anew", manual(800), 0, demands{orders(1, 500)}, within(400, 10_000), time.Hour, 900, "800 [demand=500 scaleDownAfter=800]"},
		{"up is at once", manual(400), 0, demands{orders(1, 500)}, within(400, 10_000), time.Minute, 400, "500 [demand=500]"},
		{"nothing while a change is under way", scaling.ProvisionedThroughput{RUPerSecond: 2000, Minimum: 400, Pending: true}, 0, demands{orders(9, 500)}, within(400, 10_000), 0, 0, "2000 [demand=4500 pending=2000]"},
		{"no replicas need nothing, whatever one uses", manual(400), 0, demands{orders(0, 0)}, within(400, 10_000), 0, 0, "400 [demand=0 min=400]"},
		{"what is not known lowers nothing", manual(2000), 0, demands{orders(3, 0)}, within(400, 10_000), 2 * time.Hour, 400, "2000 [demand=0 min=400 unknown=2000]"},
		{"nor does what is not decided", manual(2000), 0, demands{{Processor: "orders", Undecided: true, PerReplica: 100}}, within(400, 10_000), 2 * time.Hour, 400, "2000 [demand=0 min=400 unknown=2000]"},
		{"and raises with what is known", manual(400), 0, demands{orders(3, 0), mails(3, 500)}, within(400, 10_000), 0, 0, "1500 [demand=0 demand=1500]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			memory := scaling.ThroughputMemory{Most: c.most}
			if c.lower != 0 {
				memory.Lower = noon.Add(-c.lower)
			}
			d, _ := scaling.DecideThroughput(scaling.ThroughputInput{Now: noon, Provisioned: c.provisioned, Before: c.before, Demands: c.demands, Policy: c.policy, Memory: memory})
			if got := shownThroughput(d); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			for _, r := range d.Reasons {
				if r.Why == "" || strings.HasSuffix(r.Why, ".") {
					t.Errorf("step %s says %q", r.Step, r.Why)
				}
			}
		})
	}
}

// TestThroughputRisesAtOnceAndFallsOncePerBurst has two bursts within scaleDownAfter.
func TestThroughputRisesAtOnceAndFallsOncePerBurst(t *testing.T) {
	t.Parallel()
	now := scaling.ProvisionedThroughput{RUPerSecond: 400, Minimum: 400}
	var memory scaling.ThroughputMemory
	var changes []string
	for minute := range 180 {
		replicas := 0
		if minute >= 10 && minute < 20 || minute >= 40 && minute < 45 {
			replicas = 4
		}
		var d scaling.ThroughputDecision
		d, memory = scaling.DecideThroughput(scaling.ThroughputInput{
			Now: noon.Add(time.Duration(minute) * time.Minute), Provisioned: now, Before: 400, Memory: memory,
			Demands: []scaling.Demand{{Processor: "orders", Replicas: replicas, PerReplica: 500}}, Policy: scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: time.Hour},
		})
		if d.RUPerSecond != now.RUPerSecond {
			changes = append(changes, fmt.Sprintf("%d at %d", d.RUPerSecond, minute))
			now.RUPerSecond = d.RUPerSecond
		}
	}
	if want := []string{"2000 at 10", "400 at 105"}; !slices.Equal(changes, want) {
		t.Errorf("changed to %q, want %q", changes, want)
	}
}

// TestThroughputKeepsItsBounds checks, for random inputs, the bounds that no step may break.
func TestThroughputKeepsItsBounds(t *testing.T) {
	t.Parallel()
	for story := range uint64(20_000) {
		r := rand.New(rand.NewPCG(story, 15))
		step := 100
		p := scaling.ProvisionedThroughput{Autoscale: r.IntN(2) == 0, Pending: r.IntN(5) == 0}
		if p.Autoscale {
			step = 1000
		}
		p.RUPerSecond, p.Minimum = step*(1+r.IntN(200)), step*r.IntN(20)
		in := scaling.ThroughputInput{Now: noon, Provisioned: p, Before: step * r.IntN(30), Memory: scaling.ThroughputMemory{Most: step * r.IntN(300)}}
		in.Policy = scaling.ThroughputPolicy{Max: 100 * (4 + r.IntN(300)), ScaleDownAfter: time.Duration(r.IntN(3)) * time.Hour}
		if r.IntN(2) == 0 {
			in.Policy.Min = 100 * (1 + r.IntN(in.Policy.Max/100))
		}
		if r.IntN(2) == 0 {
			in.Memory.Lower = noon.Add(time.Duration(r.IntN(240)-180) * time.Minute)
		}
		unknown := false
		for i := range r.IntN(4) {
			d := scaling.Demand{Processor: fmt.Sprint(i), Replicas: r.IntN(20), PerReplica: float64(r.IntN(3000)) / 2}
			unknown = unknown || d.Replicas > 0 && d.PerReplica == 0
			in.Demands = append(in.Demands, d)
		}
		d, memory := scaling.DecideThroughput(in)
		complain := func(rule string) { t.Fatalf("story %d: %s: %+v gives %+v", story, rule, in, d) }
		again, _ := scaling.DecideThroughput(in)
		if shownThroughput(again) != shownThroughput(d) {
			complain("the same input gives the same decision")
		}
		floor := in.Policy.Min
		if floor == 0 {
			if floor = in.Before; floor == 0 {
				floor = p.RUPerSecond
			}
		}
		floor = (max(floor, p.Minimum) + step - 1) / step * step
		switch {
		case d.RUPerSecond%step != 0:
			complain("the service allows steps only")
		case d.RUPerSecond > p.RUPerSecond && d.RUPerSecond > max(in.Policy.Max, floor):
			complain("nothing is raised above max")
		case d.RUPerSecond < floor && d.RUPerSecond != p.RUPerSecond:
			complain("nothing is lowered below min, or below what the service allows")
		case p.Pending && d.RUPerSecond != p.RUPerSecond:
			complain("nothing changes while a change is under way")
		case d.RUPerSecond < p.RUPerSecond && (unknown || in.Policy.ScaleDownAfter > 0 && (in.Memory.Lower.IsZero() || noon.Sub(in.Memory.Lower) < in.Policy.ScaleDownAfter)):
			complain("nothing is lowered too early")
		case len(d.Reasons) == 0 || d.Reasons[len(d.Reasons)-1].RUPerSecond != d.RUPerSecond:
			complain("the last reason is behind the decision")
		case (d.Needed == nil) != unknown:
			complain("what is needed is known where all is known")
		case memory.Lower.After(noon):
			complain("nothing is remembered of the future")
		}
		more := in
		more.Demands = append(slices.Clone(in.Demands), scaling.Demand{Processor: "another", Replicas: 1 + r.IntN(5), PerReplica: 1 + float64(r.IntN(500))})
		if other, _ := scaling.DecideThroughput(more); other.RUPerSecond < d.RUPerSecond {
			complain("more demand lowers nothing")
		}
	}
}

// TestAContainerAtItsLimitHoldsScaleOut is the step throughput of [scaling.Decide].
func TestAContainerAtItsLimitHoldsScaleOut(t *testing.T) {
	t.Parallel()
	lag := func(n int64) changefeed.ProcessorLag {
		l := changefeed.ProcessorLag{Time: noon}
		for i := range 8 {
			p := changefeed.Partition{Lease: fmt.Sprint(i), Owner: "a", Lag: new(int64), Status: changefeed.StatusOK}
			if i == 0 {
				p.Lag, p.Status = &n, changefeed.StatusLagging
			}
			l.Partitions = append(l.Partitions, p)
		}
		return l
	}
	before := func(n int64) *scaling.Limit {
		return &scaling.Limit{Container: "shop/orders", RUPerSecond: 4000, LagBefore: &n}
	}
	for _, c := range []struct {
		rule    string
		lag     int64
		current int
		limit   *scaling.Limit
		want    int
		held    bool
	}{
		{"held where the lag grows", 700, 3, before(600), 3, true},
		{"and where it stays", 700, 3, before(700), 3, true},
		{"not where it falls", 700, 3, before(701), 7, false},
		{"nor where no container is at its limit", 700, 3, nil, 7, false},
		{"nor where the lag before is not known", 700, 3, &scaling.Limit{Container: "shop/orders", RUPerSecond: 4000}, 7, false},
		{"a processor at zero wakes as ever", 100, 0, before(0), 1, false},
		{"scale-in is no matter of it", 200, 3, before(100), 2, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			policy := scaling.Policy{Threshold: 100, Health: health.Policy{LeaseExpiration: time.Minute}}
			out := scaling.Decide(scaling.Input{Now: noon, Lag: lag(c.lag), Policy: policy, Memory: scaling.Memory{Replicas: &c.current, Active: c.current > 0}, Limit: c.limit})
			held := slices.ContainsFunc(out.Decision.Reasons, func(r scaling.Reason) bool { return r.Step == "throughput" })
			if out.Decision.Replicas != c.want || held != c.held {
				t.Errorf("decided %d, held %t: %v", out.Decision.Replicas, held, out.Decision.Reasons)
			}
			if c.held && out.Decision.MetricValue > int64(c.want)*policy.Threshold {
				t.Errorf("metricValue %d asks for more than %d", out.Decision.MetricValue, c.want)
			}
		})
	}
}
