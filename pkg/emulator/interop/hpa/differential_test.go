package hpa

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

var (
	polls = flag.Int("polls", 500_000, "polls to compare")
	seed  = flag.Uint64("seed", 1, "of the first story")
	only  = flag.Bool("one", false, "tell the story of the seed alone, poll by poll")
)

const (
	partitions = 24
	workers    = 4
	// settled is longer than every window: after it, what an HPA remembers has no effect.
	settled = 2 * time.Hour
	// The deviations that docs/decide.md lists under "Where this differs from the HPA".
	deviationFallback  = "a fallback is no recommendation"
	deviationNew       = "the first decision meets no window"
	deviationAsleep    = "what cooldown took to zero counts as a change"
	deviationForgotten = "a change counts for the longest period of both directions"
	deviationAtLeast   = "an incomplete poll holds no scale-out back"
	deviationBounds    = "a bound that moved beyond the replicas does not suspend the metric for a poll"
)

// TestBehaviorIsTheHPAs plays random stories of one processor each, and lets the HPA's controller
// act on the same metric at the same times. After each poll both have the same replicas, but for
// the deviations that docs/decide.md lists: where the condition of one holds and the replicas
// differ, the story ends there, and the deviation is counted.
func TestBehaviorIsTheHPAs(t *testing.T) {
	t.Parallel()
	c := newCluster(t.Context())
	var (
		mu    sync.Mutex
		next  = *seed
		count = tally{deviations: make(map[string]int)}
		work  sync.WaitGroup
	)
	for range workers {
		work.Go(func() {
			for {
				mu.Lock()
				number, enough := next, count.polls >= *polls || t.Failed() || *only && next > *seed
				next++
				mu.Unlock()
				if enough {
					return
				}
				synctest.Test(t, func(t *testing.T) {
					told := tell(c, number)
					mu.Lock()
					defer mu.Unlock()
					count.add(told)
					if told.difference != "" {
						t.Errorf("story %d: %s", number, told.difference)
					}
				})
			}
		})
	}
	work.Wait()
	t.Log(count)
	if *only {
		return
	}
	for _, d := range []string{deviationFallback, deviationNew, deviationAsleep, deviationForgotten, deviationAtLeast, deviationBounds} {
		if count.deviations[d] == 0 {
			t.Errorf("no story met the deviation %q: it may be none any more", d)
		}
	}
}

// tally sums up stories.
type tally struct {
	stories, polls, failed, incomplete, out, in, held int
	deviations                                        map[string]int
}

func (n *tally) add(s *story) {
	n.stories++
	n.polls += s.count.polls
	n.failed += s.count.failed
	n.incomplete += s.count.incomplete
	n.out += s.count.out
	n.in += s.count.in
	n.held += s.count.held
	if s.deviation != "" {
		n.deviations[s.deviation]++
	}
}

func (n tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d polls in %d stories: %d failed, %d incomplete; %d scale-outs, %d scale-ins, %d times a window, a policy or the tolerance held",
		n.polls, n.stories, n.failed, n.incomplete, n.out, n.in, n.held)
	for _, d := range slices.Sorted(maps.Keys(n.deviations)) {
		fmt.Fprintf(&b, "\n%6d stories ended with: %s", n.deviations[d], d)
	}
	return b.String()
}

// change is a change of the replicas of an HPA's target by the HPA.
type change struct {
	at    time.Time
	delta int
}

// story is one processor, and the HPA beside it.
type story struct {
	*rand.Rand
	cluster *cluster
	target  *target
	hpa     *autoscalingv2.HorizontalPodAutoscaler

	policy scaling.Policy
	memory scaling.Memory
	trust  int // one poll in so many fails, another is incomplete; 0 = none
	lag    int64

	partSince   time.Time // when an incomplete poll last asked for at least the current replicas
	newSince    time.Time // when the HPA was made, if that was with the first decision
	asleepSince time.Time // when cooldown last took more than one replica to zero
	boundsSince time.Time // when a bound last moved beyond the replicas
	changes     []change  // that the HPA made

	count      tally
	deviation  string // that ended the story
	difference string // that nothing explains
}

// tell plays one story in its own time.
func tell(c *cluster, number uint64) *story {
	namespace := fmt.Sprintf("story-%d", number)
	s := &story{Rand: rand.New(rand.NewPCG(number, 0)), cluster: c, target: &target{replicas: 1, metrics: make(map[string]*int64)}}
	c.targets.Store(namespace, s.target)
	defer c.targets.Delete(namespace)
	s.policy = s.randomPolicy()
	s.hpa = hpaOf(namespace, s.policy)
	s.trust = []int{0, 3, 10, 30}[s.IntN(4)]
	born := s.begin()
	for range 20 + s.IntN(150) {
		s.wait()
		if s.happens(40) && born {
			s.moveBounds()
		}
		born = s.poll() || born
		if s.deviation != "" || s.difference != "" {
			break
		}
	}
	return s
}

// happens is true once in n times.
func (s *story) happens(n int) bool { return s.IntN(n) == 0 }

// begin makes the HPA, which finds replicas and no metric, and reports whether the processor had a
// decision before. An HPA remembers the replicas that it finds as its first recommendation.
func (s *story) begin() (born bool) {
	if s.policy.MinReplicas <= 1 && s.happens(2) {
		if s.happens(5) {
			return false // it is made with the first decision
		}
		s.reconcile()
		time.Sleep(settled)
		return false
	}
	n := max(1, s.policy.MinReplicas) + s.IntN(1+s.most()-max(1, s.policy.MinReplicas))
	s.target.replicas = int32(n)
	s.reconcile()
	time.Sleep(settled)
	s.memory = scaling.Memory{Replicas: &n, Active: true, MetricValue: int64(n) * s.policy.Threshold, LastActive: time.Now(), Partitions: partitions}
	return true
}

// most is the highest count that the HPA may set.
func (s *story) most() int {
	if s.policy.MaxReplicas != nil {
		return *s.policy.MaxReplicas
	}
	return partitions
}

// wait lets the time of the next poll come, often just at the end of a window or a period.
func (s *story) wait() {
	switch s.IntN(12) {
	case 0:
		time.Sleep(time.Duration(s.IntN(1200)) * time.Second)
	case 1, 2:
		time.Sleep(time.Duration(s.IntN(90_000)) * time.Millisecond)
	case 3, 4, 5:
		time.Sleep(time.Duration(s.IntN(90)) * time.Second)
	default:
		time.Sleep(15 * time.Second)
	}
}

// moveBounds sets other bounds, as a user would.
func (s *story) moveBounds() {
	if s.policy.MinReplicas > 0 {
		s.policy.MinReplicas = 1 + s.IntN(5)
	}
	most := max(1, s.policy.MinReplicas) + s.IntN(partitions-5)
	s.policy.MaxReplicas = &most
	bound(s.hpa, s.policy)
	if n := int(s.target.replicas); n > 0 && (n < s.policy.MinReplicas || n > most) {
		s.boundsSince = time.Now()
	}
}

// poll measures, lets both decide, and compares. It reports whether the processor has a decision.
func (s *story) poll() (decided bool) {
	now := time.Now()
	measured := s.measure(now)
	before := s.memory.Replicas
	out := scaling.Decide(scaling.Input{Now: now, Lag: measured, Policy: s.policy, Memory: s.memory})
	s.memory = out.Memory
	s.count.polls++
	if slices.ContainsFunc(s.memory.Recommendations, func(r scaling.Recommendation) bool { return r.AtLeast && r.Time.Equal(now) }) {
		s.partSince = now
	}
	s.setMetrics(measured)
	d := out.Decision
	if *only {
		fmt.Printf("%s: %s, lag %s, from %d, decided %+v\n", now.Format(time.TimeOnly), kind(measured), number(measured.Lag()), s.target.replicas, d)
	}
	if d == nil {
		return false
	}
	if !measured.Known() && out.Memory.Failures > s.policy.Fallback.FailureThreshold {
		s.deviation = deviationFallback
		return true
	}
	if before == nil && d.Replicas == 0 {
		s.target.replicas = 0 // as KEDA does with a target that it finds without activity
	}
	// KEDA brings a target from zero to one replica; from there on the HPA acts.
	if s.target.replicas == 0 && d.Active {
		s.target.replicas = 1
	}
	if s.cluster.isNew(s.hpa) {
		s.newSince = now
	}
	was := s.target.replicas
	s.reconcile()
	is := s.target.replicas
	s.record(now, int(is-was))
	if *only {
		fmt.Printf("          HPA %d -> %d\n", was, is)
	}
	if s.difference != "" {
		return true
	}
	// The step to zero is cooldown's alone, as it is KEDA's; what the HPA does before is lost.
	if was > 0 && d.Replicas == 0 {
		if last := d.Reasons[len(d.Reasons)-1]; last.Step != "cooldown" || d.Active || !measured.Complete() || s.policy.MinReplicas > 0 {
			s.difference = fmt.Sprintf("poll %d, %s: zero replicas by %+v", s.count.polls, kind(measured), d.Reasons)
		}
		if was > 1 {
			s.asleepSince = now
		}
		s.target.replicas = 0
		return true
	}
	if was > 0 && d.Replicas != int(is) {
		if s.deviation = s.explain(now, d.Replicas > int(is)); s.deviation == "" {
			s.difference = fmt.Sprintf("poll %d, %s, lag %s: decided %d, the HPA %d, from %d\nreasons %+v\npolicy %+v",
				s.count.polls, kind(measured), number(measured.Lag()), d.Replicas, is, was, d.Reasons, s.policy)
		}
		return true
	}
	s.observe(measured, d, int(was))
	return true
}

// isNew reports whether the controller has never seen an HPA.
func (c *cluster) isNew(hpa *autoscalingv2.HorizontalPodAutoscaler) bool {
	_, seen := c.seen.Load(hpa.Namespace)
	return !seen
}

// reconcile lets the HPA act. That a metric could not be measured is an error, which the controller
// reports; there is no other.
func (s *story) reconcile() {
	s.cluster.seen.Store(s.hpa.Namespace, true)
	if err := s.cluster.reconcile(s.hpa); err != nil && !strings.Contains(err.Error(), errNoMetric.Error()) {
		s.difference = err.Error()
	}
}

// record remembers a change as the HPA does.
func (s *story) record(now time.Time, delta int) {
	if delta != 0 {
		s.changes = append(s.changes, change{now, delta})
	}
}

// observe counts what happened at a poll.
func (s *story) observe(measured changefeed.ProcessorLag, d *scaling.Decision, was int) {
	switch kind(measured) {
	case "failed":
		s.count.failed++
	case "incomplete":
		s.count.incomplete++
	}
	switch n := max(1, d.Replicas); {
	case n > was:
		s.count.out++
	case n < was:
		s.count.in++
	}
	if slices.ContainsFunc(d.Reasons, func(r scaling.Reason) bool { return r.Step == "behavior" }) {
		s.count.held++
	}
}

// explain returns the deviation whose condition holds, "" if there is none. Some deviations only
// explain more replicas than the HPA has.
func (s *story) explain(now time.Time, more bool) string {
	up, down := s.policy.Behavior.ScaleUp, s.policy.Behavior.ScaleDown
	window := max(up.StabilizationWindow, down.StabilizationWindow)
	period := max(longest(up.Policies), longest(down.Policies))
	since := func(at time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) < d }
	switch {
	case more && since(s.newSince, up.StabilizationWindow):
		return deviationNew
	case more && since(s.partSince, up.StabilizationWindow):
		return deviationAtLeast
	case more && since(s.asleepSince, period):
		return deviationAsleep
	case since(s.boundsSince, max(window, period)) || s.boundsSince.Equal(now):
		return deviationBounds
	case s.forgotten(now):
		return deviationForgotten
	}
	return ""
}

// forgotten reports whether the HPA has forgotten a change that a policy of the other direction
// counts: with a new change of a direction it drops one that is older than the periods of that
// direction (storeScaleEvent).
func (s *story) forgotten(now time.Time) bool {
	up, down := longest(s.policy.Behavior.ScaleUp.Policies), longest(s.policy.Behavior.ScaleDown.Policies)
	for i, c := range s.changes {
		own, other := up, down
		if c.delta < 0 {
			own, other = down, up
		}
		for _, later := range s.changes[i+1:] {
			if (later.delta > 0) == (c.delta > 0) && later.at.Sub(c.at) > own && now.Sub(c.at) < other {
				return true
			}
		}
	}
	return false
}

func longest(policies []scaling.RatePolicy) (d time.Duration) {
	for _, p := range policies {
		d = max(d, p.Period)
	}
	return d
}

func kind(l changefeed.ProcessorLag) string {
	switch {
	case !l.Known():
		return "failed"
	case !l.Complete():
		return "incomplete"
	}
	return "complete"
}

func number(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// measure is what a poll finds: a lag that grows, falls, jumps and ends, and now and then only a
// part of it, or nothing.
func (s *story) measure(now time.Time) changefeed.ProcessorLag {
	threshold := s.policy.Threshold
	switch s.IntN(8) {
	case 0:
		s.lag = s.Int64N((partitions + 4) * threshold)
	case 1:
		s.lag = 0
	case 2, 3:
		s.lag = max(0, s.lag+s.Int64N(4*threshold)-2*threshold)
	case 4:
		s.lag = int64(1+s.IntN(partitions)) * threshold // exactly so many replicas
	case 5:
		s.lag = s.near(int64(s.target.replicas) * threshold)
	}
	l := changefeed.ProcessorLag{Time: now}
	incomplete := false
	if s.trust > 0 {
		if s.happens(s.trust) {
			l.Error = "the leases cannot be read"
			return l
		}
		incomplete = s.happens(s.trust)
	}
	left := s.lag
	for i := range partitions {
		lag := min(left, s.lag/partitions+s.Int64N(threshold+1))
		if i == partitions-1 {
			lag = left
		}
		left -= lag
		p := changefeed.Partition{Lease: leases[i], Owner: "worker", LeaseTime: now, Status: changefeed.StatusOK, Lag: &lag}
		switch {
		case incomplete && (i == 0 || s.happens(4)):
			p.Lag, p.Status, p.Error = nil, changefeed.StatusUnknown, "429"
		case lag > 0:
			p.Status = changefeed.StatusLagging
		}
		l.Partitions = append(l.Partitions, p)
	}
	return l
}

// near is a lag at the edge of a tolerance.
func (s *story) near(at int64) int64 {
	edge := 1 + s.policy.Behavior.ScaleUp.Tolerance
	if s.happens(2) {
		edge = 1 - s.policy.Behavior.ScaleDown.Tolerance
	}
	return max(0, int64(math.Round(float64(at)*edge))+s.Int64N(3)-1)
}

var leases = func() (names [partitions]string) {
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	return names
}()

// setMetrics gives the HPA what a scaler would have found: one metric over the partitions that are
// known, and one over those that are not, which fails as long as there are any.
func (s *story) setMetrics(l changefeed.ProcessorLag) {
	s.target.metrics["known"], s.target.metrics["unknown"] = nil, nil
	if l.Known() {
		s.target.metrics["known"] = new(1000 * min(*l.Lag(), partitions*s.policy.Threshold))
	}
	if l.Complete() {
		s.target.metrics["unknown"] = new(int64(0))
	}
}

func (s *story) randomPolicy() scaling.Policy {
	p := scaling.Policy{
		Threshold: []int64{1, 3, 7, 100, 1 + s.Int64N(1000)}[s.IntN(5)],
		Cooldown:  time.Duration(s.IntN(600)) * time.Second,
		Health:    health.Policy{StalledAfter: 5 * time.Minute, LeaseExpiration: time.Minute},
		Behavior:  scaling.Behavior{ScaleUp: s.rules(), ScaleDown: s.rules()},
		Fallback:  scaling.Fallback{FailureThreshold: math.MaxInt32, Behavior: scaling.FallbackMax},
	}
	if s.happens(5) {
		p.Fallback.FailureThreshold = s.IntN(4)
	}
	if s.happens(2) {
		p.MinReplicas = s.IntN(4)
	}
	if s.happens(2) {
		most := max(1, p.MinReplicas) + s.IntN(20)
		p.MaxReplicas = &most
	}
	return p
}

func (s *story) rules() scaling.Rules {
	r := scaling.Rules{SelectPolicy: []scaling.SelectPolicy{scaling.SelectMax, scaling.SelectMin, ""}[s.IntN(3)]}
	if s.happens(6) {
		r.SelectPolicy = scaling.SelectDisabled
	}
	switch s.IntN(4) {
	case 0:
	case 1:
		r.StabilizationWindow = time.Duration(s.IntN(601)) * time.Second
	default:
		r.StabilizationWindow = time.Duration(s.IntN(21)) * 15 * time.Second
	}
	if s.happens(2) {
		r.Tolerance = quantity([]int64{10, 50, 100, 150, 200, 333, 500, s.Int64N(900)}[s.IntN(8)]).AsApproximateFloat64()
	}
	for range s.IntN(4) {
		p := scaling.RatePolicy{Type: scaling.RatePods, Value: 1 + s.IntN(8), Period: time.Duration(1+s.IntN(20)) * 15 * time.Second}
		if s.happens(4) {
			p.Period = time.Duration(1+s.IntN(600)) * time.Second
		}
		if s.happens(2) {
			p.Type, p.Value = scaling.RatePercent, []int{5, 10, 25, 33, 50, 100, 150, 1 + s.IntN(300)}[s.IntN(8)]
		}
		r.Policies = append(r.Policies, p)
	}
	return r
}

func quantity(thousandths int64) *resource.Quantity {
	return resource.NewMilliQuantity(thousandths, resource.DecimalSI)
}

// hpaOf is the HPA that KEDA makes of a ScaledObject with the same fields.
func hpaOf(namespace string, p scaling.Policy) *autoscalingv2.HorizontalPodAutoscaler {
	metric := func(name string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: name},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(p.Threshold, resource.DecimalSI)},
		}}
	}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"},
			Metrics:        []autoscalingv2.MetricSpec{metric("known"), metric("unknown")},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp:   rulesOf(p.Behavior.ScaleUp, p.Behavior.ScaleDown, 1),
				ScaleDown: rulesOf(p.Behavior.ScaleDown, p.Behavior.ScaleUp, -1),
			},
		},
	}
	bound(hpa, p)
	return hpa
}

// bound sets the bounds: an HPA's minReplicas is at least 1, and KEDA's minReplicaCount 0 is that.
func bound(hpa *autoscalingv2.HorizontalPodAutoscaler, p scaling.Policy) {
	hpa.Spec.MinReplicas = new(int32(max(1, p.MinReplicas)))
	hpa.Spec.MaxReplicas = partitions
	if p.MaxReplicas != nil {
		hpa.Spec.MaxReplicas = int32(*p.MaxReplicas)
	}
}

// rulesOf are the rules of a direction as an HPA has them, which needs a policy. Where there is
// none, which is no limit, it gets one that allows everything.
func rulesOf(r, other scaling.Rules, direction int) *autoscalingv2.HPAScalingRules {
	rules := &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32(r.StabilizationWindow / time.Second)),
		SelectPolicy:               new(autoscalingv2.MaxChangePolicySelect),
		Tolerance:                  quantity(int64(math.Round(r.Tolerance * 1000))),
	}
	switch r.SelectPolicy {
	case scaling.SelectMin:
		rules.SelectPolicy = new(autoscalingv2.MinChangePolicySelect)
	case scaling.SelectDisabled:
		rules.SelectPolicy = new(autoscalingv2.DisabledPolicySelect)
	}
	for _, p := range r.Policies {
		rules.Policies = append(rules.Policies, autoscalingv2.HPAScalingPolicy{
			Type: autoscalingv2.HPAScalingPolicyType(p.Type), Value: int32(p.Value), PeriodSeconds: int32(p.Period / time.Second),
		})
	}
	if len(rules.Policies) == 0 {
		all := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: math.MaxInt32 / 2, PeriodSeconds: max(1, int32(longest(other.Policies)/time.Second))}
		if direction < 0 {
			all.Type, all.Value = autoscalingv2.PercentScalingPolicy, 100
		}
		rules.Policies = append(rules.Policies, all)
	}
	return rules
}
