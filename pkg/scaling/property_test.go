package scaling_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// stories is the number of random stories. A story's number is its seed.
const stories = 3000

// tick is one poll of a random story.
type tick struct {
	in   scaling.Input
	out  scaling.Outcome
	seen time.Time     // of the poll; of an earlier later one if the clock was set back
	aged time.Duration // the greatest age that a later poll computed for it
}

// later polls at the given time, which makes the earlier ticks older.
func later(told []tick, now time.Time) {
	for i := range told {
		k := &told[i]
		if k.seen.After(now) {
			k.seen = now
		}
		k.aged = max(k.aged, now.Sub(k.seen))
	}
}

// previous is the replicas of the decision before, 0 if there was none.
func (k tick) previous() int {
	if k.in.Memory.Replicas == nil {
		return 0
	}
	return *k.in.Memory.Replicas
}

// generator makes the policy and the measurements of a random story.
type generator struct {
	*rand.Rand
	windows    []scaling.Schedule
	partitions int
	leases     []string
	session    []int64 // newest LSN by partition
	checkpoint []int64
	named      int // leases created so far
}

func newGenerator(story uint64, windows []scaling.Schedule) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(story, 0)), windows: windows}
	for range 1 + g.IntN(12) {
		g.add(1 + g.Int64N(1000))
	}
	return g
}

// add adds a partition.
func (g *generator) add(lsn int64) {
	g.partitions, g.named = g.partitions+1, g.named+1
	g.leases = append(g.leases, fmt.Sprint(g.named))
	g.session, g.checkpoint = append(g.session, lsn), append(g.checkpoint, lsn)
}

// remove removes a partition.
func (g *generator) remove(i int) {
	g.partitions--
	g.leases, g.session, g.checkpoint = slices.Delete(g.leases, i, i+1), slices.Delete(g.session, i, i+1), slices.Delete(g.checkpoint, i, i+1)
}

// rearrange splits a partition into two, or merges two.
func (g *generator) rearrange() {
	i := g.IntN(g.partitions)
	switch lsn := g.checkpoint[i]; {
	case g.happens(2):
		g.remove(i)
		g.add(lsn)
		g.add(lsn)
	case g.partitions > 1:
		g.remove(i)
	}
}

// happens is true once in n times.
func (g *generator) happens(n int) bool { return g.IntN(n) == 0 }

func (g *generator) seconds(limit int) time.Duration {
	return time.Duration(g.IntN(limit)) * time.Second
}

func (g *generator) rules() scaling.Rules {
	r := scaling.Rules{SelectPolicy: []scaling.SelectPolicy{scaling.SelectMax, scaling.SelectMin, "", scaling.SelectDisabled}[g.IntN(4)]}
	if !g.happens(3) {
		r.StabilizationWindow = g.seconds(600)
	}
	if g.happens(3) {
		r.Tolerance = g.Float64() / 2
	}
	for range g.IntN(3) {
		r.Policies = append(r.Policies, scaling.RatePolicy{
			Type:   []scaling.RateType{scaling.RatePods, scaling.RatePercent}[g.IntN(2)],
			Value:  1 + g.IntN(120),
			Period: time.Second + g.seconds(600),
		})
	}
	return r
}

func (g *generator) policy() scaling.Policy {
	p := policy()
	p.Threshold = 1 + g.Int64N(200)
	p.Activation = g.Int64N(p.Threshold)
	p.LimitToPartitionsWithLag = g.happens(3)
	p.EvenPartitions = g.happens(4)
	p.ExcludeStalled = g.happens(4)
	if g.happens(5) {
		p.MaxLeasesPerReplica = 1 + g.IntN(6)
	}
	if g.happens(5) {
		p.Health.Retention = time.Second + g.seconds(900)
	}
	p.Cooldown = g.seconds(600)
	p.Behavior = scaling.Behavior{ScaleUp: g.rules(), ScaleDown: g.rules()}
	p.Fallback = scaling.Fallback{
		FailureThreshold: g.IntN(4),
		Behavior: []scaling.FallbackBehavior{
			scaling.FallbackMax, scaling.FallbackStatic, scaling.FallbackCurrent, scaling.FallbackCurrentIfHigher, scaling.FallbackCurrentIfLower,
		}[g.IntN(5)],
		Replicas: g.IntN(6),
	}
	if g.happens(2) {
		p.MinReplicas = g.IntN(4)
	}
	if g.happens(2) {
		most := max(1, p.MinReplicas) + g.IntN(10)
		p.MaxReplicas = &most
	}
	if g.happens(3) {
		p.MaxChangeAge = time.Second + g.seconds(300)
	}
	if g.happens(3) {
		p.CatchUpWithin = time.Second + g.seconds(600)
	}
	if g.happens(4) {
		p.Schedules = g.windows
	}
	return p
}

// measure lets changes arrive and be processed. It returns what the account would answer: sometimes
// only a part, an old reading, or nothing.
func (g *generator) measure(at time.Time) changefeed.ProcessorLag {
	if g.happens(15) {
		g.rearrange()
	}
	for i := range g.partitions {
		if g.happens(3) {
			g.session[i] += g.Int64N(300)
		}
		g.checkpoint[i] += g.Int64N(1 + g.session[i] - g.checkpoint[i])
		if g.happens(2) {
			g.checkpoint[i] = g.session[i]
		}
	}
	if g.happens(12) {
		return failed(at)
	}
	l := changefeed.ProcessorLag{Time: at}
	shaky, short := g.happens(6), g.happens(6)
	for i := range g.partitions {
		session, checkpoint, lag := g.session[i], g.checkpoint[i], g.session[i]-g.checkpoint[i]
		p := changefeed.Partition{
			Lease: g.leases[i], Owner: []string{"", "a", "b", "c", "d", "e", "f", "g"}[g.IntN(8)], LeaseTime: at.Add(-g.seconds(80)),
			Lag: &lag, SessionLSN: &session, CheckpointLSN: &checkpoint, Position: fmt.Sprint(checkpoint),
			Status: changefeed.StatusOK,
		}
		switch {
		case shaky && g.happens(2):
			p.Lag, p.SessionLSN, p.CheckpointLSN = nil, nil, nil
			p.Status, p.Error = changefeed.StatusUnknown, "the account could not answer"
		case lag > 0:
			age := g.Int64N(600)
			p.Status, p.Age = changefeed.StatusLagging, &age
			if g.happens(20) {
				p.Status = changefeed.StatusUncheckpointed
			}
			if g.happens(15) {
				p.Status, p.Ranges = changefeed.StatusSplitting, 2
				if shaky {
					p.Error = "a child could not be read"
				}
			}
		}
		if short && p.Lag != nil && g.happens(2) {
			p.Measured = at.Add(-g.seconds(900)) // the request budget skipped this partition
		}
		l.Partitions = append(l.Partitions, p)
	}
	return l
}

// TestProperties_Long plays random stories and checks every property after each poll. A property
// returns what is wrong, or "".
func TestProperties_Long(t *testing.T) {
	t.Parallel()
	properties := []struct {
		rule  string
		holds func(story []tick) string
	}{
		{"bounds always hold", boundsHold},
		{"no scale-in while the truth is unknown", noScaleInWhileUnknown},
		{"nothing known, nothing decided", nothingKnownNothingDecided},
		{"no flapping inside a window", noFlapping},
		{"what was not measured is no recommendation", unmeasuredIsNoRecommendation},
		{"a slightly lower count is held off for a short time", levelEnds},
		{"no change beyond the rate policies", rateIsLimited},
		{"zero only after cooldown", zeroOnlyAfterCooldown},
		{"zero at once after cooldown", zeroComesAfterCooldown},
		{"an even count divides the partitions", evenDivides},
		{"the memory is bounded", memoryIsBounded},
		{"the last reason stands for the decision", reasonsExplain},
		{"the same input gives the same outcome", sameInputSameOutcome},
		{"the memory may be stored", memoryMayBeStored},
	}
	windows := schedules(t, floor{"UTC", "0,20,40 * * * *", "10,30,50 * * * *", 4})
	for number := range uint64(stories) {
		g := newGenerator(number, windows)
		p, now, memory := g.policy(), start, scaling.Memory{}
		var healthy health.Memory
		if number%2 == 1 {
			p.Sizing = scaling.SizingAuto
		}
		var told []tick
		for range 10 + g.IntN(60) {
			now = now.Add(g.seconds(90))
			if g.happens(15) {
				now = now.Add(g.seconds(1200))
			}
			if g.happens(25) {
				now = now.Add(-g.seconds(5000)) // the clock is corrected
				memory, healthy = memory.Until(now), healthy.Until(now)
			}
			later(told, now)
			in := scaling.Input{Now: now, Policy: p, Memory: memory}
			in.Lag, healthy = health.Assess(health.Input{Now: now, Lag: g.measure(now), Policy: p.Health, Asked: memory.Asked, Memory: healthy})
			out := scaling.Decide(in)
			memory = out.Memory
			told = append(told, tick{in: in, out: out, seen: now})
			for _, property := range properties {
				if wrong := property.holds(told); wrong != "" {
					t.Fatalf("story %d, poll %d: %s: %s\nbefore %d, decided %s\npolicy %+v",
						number, len(told), property.rule, wrong, told[len(told)-1].previous(), describe(out.Decision), p)
				}
			}
		}
	}
}

// asked is the count after a step, -1 if the step did not act.
func (k tick) asked(step string) int {
	if k.out.Decision != nil {
		for _, r := range k.out.Decision.Reasons {
			if r.Step == step {
				return r.Replicas
			}
		}
	}
	return -1
}

// complete reports whether every partition has a reading that is not too old.
func (k tick) complete() bool {
	oldest := k.in.Now.Add(-max(time.Minute, k.in.Policy.Behavior.ScaleDown.StabilizationWindow))
	known := 0
	for _, p := range k.in.Lag.Partitions {
		if p.Known() && p.Carried() && p.Measured.Before(oldest) {
			return false
		}
		if p.Known() {
			known++
		}
	}
	for _, p := range k.in.Lag.Partitions {
		recent := p.Earlier != nil && (p.Earlier.Lag != nil || k.in.Now.Sub(p.Earlier.Since) >= time.Hour)
		if !p.Known() && (known == 0 || !recent) {
			return false
		}
	}
	return k.in.Lag.Error == "" && (k.in.Lag.Bootstrap || len(k.in.Lag.Partitions) > 0)
}

// outOfBounds reports whether the last decision exceeds the number of partitions, so that step 10
// lowers it.
func (k tick) outOfBounds() bool {
	return k.complete() && k.in.Lag.Complete() && k.previous() > max(k.in.Policy.MinReplicas, k.in.Lag.PartitionCount())
}

// fellBack reports whether the fallback applies, which ignores what is pending.
func (k tick) fellBack() bool {
	return !k.in.Lag.Known() && k.out.Memory.Failures > k.in.Policy.Fallback.FailureThreshold
}

func boundsHold(story []tick) string {
	k := story[len(story)-1]
	d, p := k.out.Decision, k.in.Policy
	switch {
	case d == nil:
	case d.Replicas < p.MinReplicas:
		return "less than minReplicaCount"
	case p.MaxReplicas != nil && d.Replicas > *p.MaxReplicas:
		return "more than maxReplicaCount"
	case k.in.Lag.Known() && d.Replicas > max(p.MinReplicas, useful(story)):
		return "more than there are partitions"
	case d.Replicas < 0 || d.Active && d.Replicas == 0:
		return "fewer than an active processor needs"
	}
	return ""
}

// useful is how many replicas can have work: the partitions of the last complete poll, or more if
// an incomplete poll since then found more.
func useful(story []tick) int {
	most := 0
	for _, k := range slices.Backward(story) {
		most = max(most, k.in.Lag.PartitionCount())
		if k.complete() && k.in.Lag.Complete() {
			return most
		}
		most = max(most, k.previous())
	}
	return most
}

func noScaleInWhileUnknown(story []tick) string {
	k := story[len(story)-1]
	switch d := k.out.Decision; {
	case d == nil || k.complete() || k.fellBack():
	case k.in.Memory.Replicas == nil && d.Replicas == 0:
		return "a first decision for zero"
	case d.Replicas < k.previous() || d.Direction == scaling.In:
		return "a scale-in"
	case k.in.Memory.Active && !d.Active:
		return "activity ended"
	case d.MetricValue < k.in.Memory.MetricValue:
		return "metricValue fell"
	}
	return ""
}

// nothingKnownNothingDecided: nothing is decided before anything was measured, except by a fallback
// with a count of its own.
func nothingKnownNothingDecided(story []tick) string {
	for _, k := range story {
		if k.in.Lag.Known() {
			return ""
		}
	}
	k := story[len(story)-1]
	fallback := k.in.Policy.Fallback
	if d := k.out.Decision; d != nil && (!k.fellBack() || fallback.Behavior == scaling.FallbackMax || fallback.Behavior == scaling.FallbackCurrent) {
		return "decided without ever knowing anything"
	}
	return ""
}

// noFlapping: within the window of its direction, no decision reverses an earlier one. Exempt are
// the steps between one and zero, and changes without a recommendation: fewer partitions, or a
// fallback.
func noFlapping(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil || d.Direction == scaling.None || d.Replicas == 0 || k.previous() == 0 || k.outOfBounds() {
		return ""
	}
	opposite, window := scaling.Out, k.in.Policy.Behavior.ScaleDown.StabilizationWindow
	if d.Direction == scaling.Out {
		opposite, window = scaling.In, k.in.Policy.Behavior.ScaleUp.StabilizationWindow
	}
	for _, earlier := range slices.Backward(story[:len(story)-1]) {
		age := k.in.Now.Sub(earlier.seen)
		if earlier.aged >= window {
			break
		}
		if e := earlier.out.Decision; e != nil && e.Replicas > 0 && earlier.previous() > 0 && e.Direction == opposite && (e.Replicas > d.Replicas) == (opposite == scaling.Out) && e.Replicas != d.Replicas && !earlier.outOfBounds() && !earlier.fellBack() {
			return fmt.Sprintf("%s, %s after %s, inside the window of %s", d.Direction, age, opposite, window)
		}
	}
	return ""
}

// unmeasuredIsNoRecommendation: a poll leaves the windows unchanged if it fails, or if it is
// incomplete and asks for fewer replicas than there are. Exempt are schedules and the first
// decision.
func unmeasuredIsNoRecommendation(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil || k.in.Memory.Replicas == nil || len(k.in.Policy.Schedules) > 0 || k.in.Policy.Behavior.ScaleDown.Tolerance > 0 {
		return ""
	}
	held := !k.in.Lag.Known() || slices.ContainsFunc(d.Reasons, func(r scaling.Reason) bool {
		return r.Step == "incomplete" && strings.Contains(r.Why, "no scale-in")
	})
	recommends := slices.ContainsFunc(k.out.Memory.Recommendations, func(r scaling.Recommendation) bool { return r.Time.Equal(k.in.Now) })
	before := slices.ContainsFunc(k.in.Memory.Recommendations, func(r scaling.Recommendation) bool { return !r.Time.Before(k.in.Now) })
	if held && recommends && !before {
		return "a recommendation"
	}
	return ""
}

// levelEnds: when step 3 holds a count, it is the last decision, more than half of it is needed,
// and it is held for at most nine minutes after fewer were enough. No incomplete poll holds.
func levelEnds(story []tick) string {
	k := story[len(story)-1]
	held := k.asked("level")
	if held < 0 {
		return ""
	}
	since := k.out.Memory.Sizing.Enough
	switch {
	case held != k.previous():
		return fmt.Sprintf("it holds %d", held)
	case !k.complete():
		return "the poll is incomplete"
	case k.in.Now.Sub(since) >= 9*time.Minute:
		return fmt.Sprintf("fewer have been enough since %s", since)
	}
	return ""
}

// rateIsLimited: in each direction, no period of a policy has a greater change than the most
// generous policy allows from the replicas at its beginning.
func rateIsLimited(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil || d.Replicas == 0 || d.Direction == scaling.None {
		return ""
	}
	rules := k.in.Policy.Behavior.ScaleUp
	if d.Direction == scaling.In {
		rules = k.in.Policy.Behavior.ScaleDown
	}
	before := max(1, k.previous())
	lowered := d.Reasons[len(d.Reasons)-1].Step == "clamp"
	if d.Replicas == before || lowered {
		return ""
	}
	if rules.SelectPolicy == scaling.SelectDisabled {
		return "a change in a direction that is disabled"
	}
	longest := time.Duration(0)
	for _, p := range slices.Concat(k.in.Policy.Behavior.ScaleUp.Policies, k.in.Policy.Behavior.ScaleDown.Policies) {
		longest = max(longest, p.Period)
	}
	var within []bool
	for _, rate := range rules.Policies {
		from := before
		for _, earlier := range story[:len(story)-1] {
			if e := earlier.out.Decision; e != nil && earlier.aged < longest && k.in.Now.Sub(earlier.seen) < rate.Period {
				from -= max(1, e.Replicas) - max(1, earlier.previous())
			}
		}
		room := float64(rate.Value)
		if rate.Type == scaling.RatePercent {
			room = float64(from)*float64(rate.Value)/100 + 1 // rounding adds at most one
		}
		moved := d.Replicas - from
		if d.Direction == scaling.In {
			moved = -moved
		}
		within = append(within, float64(moved) <= room)
	}
	if len(within) > 0 && !slices.Contains(within, true) || rules.SelectPolicy == scaling.SelectMin && slices.Contains(within, false) {
		return "a change beyond the rates"
	}
	return ""
}

func zeroOnlyAfterCooldown(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil || d.Replicas > 0 || k.previous() == 0 {
		return ""
	}
	for _, earlier := range story {
		if e := earlier.out.Decision; e != nil && e.Active && k.in.Now.Sub(earlier.seen) < k.in.Policy.Cooldown {
			return fmt.Sprintf("zero %s after an active poll", k.in.Now.Sub(earlier.seen))
		}
	}
	return ""
}

// zeroComesAfterCooldown: no window and no rate policy keeps an idle processor above zero after its
// cooldown.
func zeroComesAfterCooldown(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil || d.Active || d.Replicas == 0 || k.in.Policy.MinReplicas > 0 || !k.complete() || !k.in.Lag.Complete() {
		return ""
	}
	for _, earlier := range story {
		if e := earlier.out.Decision; e != nil && e.Active && k.in.Now.Sub(earlier.seen) < k.in.Policy.Cooldown {
			return ""
		}
	}
	return "above zero without an active poll in all of cooldownPeriod"
}

// evenDivides: if evenPartitions acted, each replica owns the same number of partitions.
func evenDivides(story []tick) string {
	k := story[len(story)-1]
	if k.out.Decision == nil {
		return ""
	}
	for _, r := range k.out.Decision.Reasons {
		if n := k.out.Memory.Partitions; r.Step == "evenPartitions" && n%r.Replicas != 0 {
			return fmt.Sprintf("%d replicas of %d partitions", r.Replicas, n)
		}
	}
	return ""
}

func memoryIsBounded(story []tick) string {
	k := story[len(story)-1]
	if k.out.Decision == nil {
		return ""
	}
	behavior := k.in.Policy.Behavior
	longestWindow := max(behavior.ScaleUp.StabilizationWindow, behavior.ScaleDown.StabilizationWindow)
	longestPeriod := time.Duration(0)
	for _, p := range slices.Concat(behavior.ScaleUp.Policies, behavior.ScaleDown.Policies) {
		longestPeriod = max(longestPeriod, p.Period)
	}
	recommendations, changes := 0, 0
	for _, earlier := range story {
		age := k.in.Now.Sub(earlier.seen)
		if age < longestWindow {
			recommendations++
		}
		if age < longestPeriod {
			changes++
		}
	}
	m := k.out.Memory
	switch {
	case len(m.Recommendations) > recommendations:
		return fmt.Sprintf("%d recommendations of %d polls in the longest window", len(m.Recommendations), recommendations)
	case len(m.Changes) > changes:
		return fmt.Sprintf("%d changes of %d polls in the longest period", len(m.Changes), changes)
	case k.in.Lag.Known() && len(m.Sizing.Partitions) > len(k.in.Lag.Partitions):
		return fmt.Sprintf("the flow of %d partitions, of %d", len(m.Sizing.Partitions), len(k.in.Lag.Partitions))
	case !k.in.Lag.Known() && len(m.Sizing.Partitions) > len(k.in.Memory.Sizing.Partitions):
		return "flows grew without a measurement"
	}
	return ""
}

// reasonsExplain: the last reason has the decided replicas.
func reasonsExplain(story []tick) string {
	k := story[len(story)-1]
	d := k.out.Decision
	if d == nil {
		return ""
	}
	if len(d.Reasons) == 0 {
		return "no reason"
	}
	if last := d.Reasons[len(d.Reasons)-1]; last.Replicas != d.Replicas {
		return fmt.Sprintf("the last reason, %s, stands for %d", last.Step, last.Replicas)
	}
	return ""
}

// sameInputSameOutcome: the outcome depends only on the input, which is not changed.
func sameInputSameOutcome(story []tick) string {
	k := story[len(story)-1]
	copied := k.in
	copied.Lag.Partitions = slices.Clone(k.in.Lag.Partitions)
	copied.Memory.Recommendations = slices.Clone(k.in.Memory.Recommendations)
	copied.Memory.Changes = slices.Clone(k.in.Memory.Changes)
	copied.Memory.Sizing.Partitions = maps.Clone(k.in.Memory.Sizing.Partitions)
	again := scaling.Decide(k.in)
	if !reflect.DeepEqual(again, k.out) {
		return "the same input gave another outcome: " + describe(again.Decision)
	}
	if !reflect.DeepEqual(copied, k.in) {
		return "the input was changed"
	}
	return ""
}

// memoryMayBeStored: a memory that went through JSON gives the same outcome. Only every twentieth
// poll checks it, since JSON is slow.
func memoryMayBeStored(story []tick) string {
	k := story[len(story)-1]
	if len(story)%20 != 0 {
		return ""
	}
	text, err := json.Marshal(k.in.Memory)
	if err != nil {
		return err.Error()
	}
	stored := k.in
	stored.Memory = scaling.Memory{}
	if err := json.Unmarshal(text, &stored.Memory); err != nil {
		return err.Error()
	}
	if got := scaling.Decide(stored); !reflect.DeepEqual(got, k.out) {
		return "from a store: " + describe(got.Decision)
	}
	return ""
}

// TestMonotoneInLag_Long: a first decision never has fewer replicas for more lag.
func TestMonotoneInLag_Long(t *testing.T) {
	t.Parallel()
	for number := range uint64(stories) {
		g := newGenerator(number, nil)
		p := g.policy()
		lags := make([]int64, g.partitions)
		last := -1
		for range 20 {
			for i := range lags {
				if g.happens(4) {
					lags[i] += g.Int64N(p.Threshold)
				}
			}
			d := scaling.Decide(scaling.Input{Now: start, Lag: measured(start, lags...), Policy: p}).Decision
			if d.Replicas < last {
				t.Fatalf("story %d: %d replicas at lags %v, %d at less\npolicy %+v", number, d.Replicas, lags, last, p)
			}
			last = d.Replicas
		}
	}
}
