package scaling_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// sized is the default policy without windows.
func sized(change ...func(*scaling.Policy)) scaling.Policy {
	return unlimited(append([]func(*scaling.Policy){func(p *scaling.Policy) {
		p.Sizing, p.CatchUpWithin = scaling.SizingAuto, 90*time.Second
	}}, change...)...)
}

func TestWhatAReplicaDoesIsMeasuredFromMoveToMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule       string
		partitions int
		each       float64 // arrivals per second and partition
		batch      time.Duration
		owners     int
		polls      int
		want       float64 // of one owner
		proven     bool
	}{
		{"owners that have a backlog show all that they can do", 8, 10, 0, 2, 20, 25, true},
		{"with batches of a minute under polls of 15 s, too", 8, 10, time.Minute, 2, 60, 25, true},
		{"and with batches of two minutes", 32, 2.5, 2 * time.Minute, 2, 120, 25, true},
		{"with one partition alone", 1, 40, 30 * time.Second, 1, 60, 25, true},
		{"owners that keep up show what arrives", 8, 5, 0, 2, 40, 20, false},
		{"so do those with batches of half a minute", 8, 5, 30 * time.Second, 2, 80, 20, false},
		{"and those with batches of a minute, though changes wait for two", 8, 5, time.Minute, 2, 80, 15, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := newPlant(c.partitions, c.each, 25, c.batch)
			p.spread(c.owners)
			w := polled(t, p, sized()).polls(c.polls)
			if got := w.memory.DrainPerReplica; math.Abs(got-c.want) > 0.2*c.want {
				t.Errorf("a replica does %.3g, want %.3g", got, c.want)
			}
			if got := w.memory.Sizing.Proven; got != c.proven {
				t.Errorf("all that it can do was seen: %v, want %v", got, c.proven)
			}
			if got := *w.memory.Arrival; math.Abs(got-c.each*float64(c.partitions)) > 0.02*got {
				t.Errorf("%.3g arrive", got)
			}
		})
	}
}

func TestWhatIsKnownOfAReplicaStaysWhileLeasesMove(t *testing.T) {
	t.Parallel()
	p := newPlant(8, 10, 25, 0)
	p.spread(2)
	w := polled(t, p, sized()).polls(20)
	for n := range 12 {
		p.spread(2 + n%3)
		w.polls(1)
		if got := w.memory.DrainPerReplica; math.Abs(got-25) > 3 {
			t.Errorf("at move %d a replica does %.3g, want 25", n, got)
		}
	}
}

func TestADatabaseThatGetsSlowerIsSeen(t *testing.T) {
	t.Parallel()
	p := newPlant(8, 10, 25, 0)
	p.spread(2)
	w := polled(t, p, sized()).polls(20)
	p.replica = 15
	w.polls(80)
	if got := w.memory.DrainPerReplica; math.Abs(got-15) > 2 {
		t.Errorf("a replica does %.3g, want 15", got)
	}
}

func TestSizing(t *testing.T) {
	t.Parallel()
	// learnt is a plant of 8 partitions whose replicas were measured at 25 changes a second, and
	// have caught up.
	learnt := func(t *testing.T, policy scaling.Policy) *watched {
		p := newPlant(8, 10, 25, 0)
		p.spread(2)
		w := polled(t, p, policy).polls(12)
		for i := range p.arrive {
			p.arrive[i] = 2.5
		}
		w.follow = true
		return w.polls(60)
	}
	// held is the learnt plant after its database became slower and more replicas did not help.
	held := func(t *testing.T) *watched {
		w := learnt(t, sized())
		w.database = 15
		for range 80 {
			w.polls(1)
			if w.reason("notEffective") != "" {
				break
			}
		}
		w.wantReason("notEffective", "look at what the handler waits for")
		return w
	}
	// level is the first plant after four replicas were needed for some polls, when three are
	// enough.
	level := func(t *testing.T, polls int) *watched {
		w := learnt(t, sized(func(p *scaling.Policy) { p.Threshold = 20 })) // in this plant a second of work is pending: at 100 each, step 2 would limit it
		for i := range w.arrive {
			w.arrive[i] = 10.5
		}
		for range 40 {
			if w.polls(1); w.last.Replicas == 4 {
				break
			}
		}
		w.polls(polls)
		w.wantReplicas(4, 4)
		for i := range w.arrive {
			w.arrive[i] = 7
		}
		return w
	}
	t.Run("the fewest replicas that hold what arrives, and stay there", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		for range 40 {
			w.polls(1)
			w.wantReplicas(1, 1)
		}
		w.wantReason("sizing", "/s arrive and 0 have waited; one replica does 2")
	})
	t.Run("what arrives grows: as many as it needs, before a lag shows it", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		for i := range w.arrive {
			w.arrive[i] = 7
		}
		w.polls(2)
		w.wantReplicas(3, 8)
		w.polls(60)
		w.wantReplicas(3, 3)
	})
	t.Run("the owner of a busy partition gets as few other leases as it needs to keep up", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		w.arrive[0] = 20
		w.polls(60)
		w.wantReplicas(3, 4) // with two it has three others, and 27.5 a second
	})
	t.Run("one replica of four less has to be enough for nine minutes", func(t *testing.T) {
		t.Parallel()
		w := level(t, 40)
		if held := w.held(3); held < 8*time.Minute || held > 9*time.Minute {
			t.Errorf("four were held for %s", held)
		}
	})
	t.Run("with evenPartitions replicas that were never busy go, too", func(t *testing.T) {
		t.Parallel()
		p := newPlant(8, 5, 25, 0)
		p.spread(8)
		w := polled(t, p, sized(evenly))
		w.follow = true
		w.polls(480)
		w.wantReplicas(2, 2)
	})
	t.Run("half of the replicas wait for nothing", func(t *testing.T) {
		t.Parallel()
		w := level(t, 40)
		for i := range w.arrive {
			w.arrive[i] = 0.5
		}
		w.polls(16)
		w.wantReplicas(1, 2)
	})
	t.Run("what an incomplete poll asks for is not known to be enough", func(t *testing.T) {
		t.Parallel()
		w := level(t, 40)
		for i := range w.arrive {
			w.arrive[i] = 5.5
		}
		for n := range 80 {
			w.plant.run(15 * time.Second)
			w.story.poll(15*time.Second, func(at time.Time) changefeed.ProcessorLag {
				l := w.measure(at)
				l.Partitions[0] = changefeed.Partition{Lease: "0", Status: changefeed.StatusUnknown}
				return l
			})
			w.wantReplicas(4, 4)
			if got := w.reason("level"); got != "" && n > 4 { // until then its last reading counts
				t.Fatalf("level says %q", got)
			}
		}
	})
	t.Run("a backlog is to be gone within catchUpWithin", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		w.away(200 * time.Second)
		// 4,000 in 90 s are 44 a second, and 20 arrive: three owners of 25.
		w.polls(1)
		w.wantReplicas(3, 4)
	})
	t.Run("catchUpWithin 0: the rates hold what arrives", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized(func(p *scaling.Policy) { p.CatchUpWithin = 0 }))
		w.away(200 * time.Second)
		w.polls(2)
		w.wantReplicas(1, 1)
	})
	t.Run("until an owner was seen at work the threshold counts", func(t *testing.T) {
		t.Parallel()
		p := newPlant(8, 100, 25, 0)
		w := polled(t, p, sized()).polls(2)
		w.wantReplicas(8, 8)
		if got := w.reason("sizing"); got != "" {
			t.Errorf("sizing says %q", got)
		}
	})
	t.Run("a partition that outruns an owner asks for nobody, and the reason names it", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		w.arrive[3] = 41
		w.polls(80)
		w.wantReplicas(1, 4)
		w.wantReason("sizing", "partition 3 alone brings 4")
		w.wantReason("sizing", "no number of replicas is enough, spread its partition key")
	})
	t.Run("replicas that a slow database leaves idle are not asked for again", func(t *testing.T) {
		t.Parallel()
		w := held(t)
		w.wantReplicas(1, 2)
	})
	t.Run("a backlog that the replicas of a slow database leave as it is asks for no more of them", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		w.away(60 * time.Second)
		w.database = 20
		for range 80 {
			w.polls(1)
			w.wantReplicas(1, 3)
		}
		w.wantReason("sizing", "/s arrive and 8")
	})
	t.Run("threshold: it only raises, and only with catchUpWithin", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized(func(p *scaling.Policy) { p.Sizing, p.Threshold = scaling.SizingThreshold, 100_000 }))
		w.wantReplicas(1, 1)
		w.away(200 * time.Second)
		w.polls(1)
		w.wantReplicas(3, 4)
		w.wantReason("catchUpWithin", "one replica does 2")
		w.policy.CatchUpWithin = 0
		w.polls(1)
		if got := w.reason("catchUpWithin"); got != "" {
			t.Errorf("catchUpWithin says %q", got)
		}
	})
	t.Run("a stalled partition that is left out asks for nobody", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized(func(p *scaling.Policy) {
			p.ExcludeStalled, p.Health.StalledAfter, p.Health.StalledPolls = true, time.Minute, 2
		}))
		w.owners[0] = "hung"
		w.follow = false
		w.plant.handler = 0
		stuck := w.plant.done[0]
		for range 40 {
			w.plant.worked[0], w.plant.done[0] = stuck, stuck
			w.polls(1)
		}
		w.wantReplicas(1, 1)
	})
	t.Run("a handful of changes now and then is no backlog that lasts", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		for i := range w.arrive {
			w.arrive[i] = 0
		}
		w.polls(30) // to zero
		for i := range 200 {
			if i%25 == 0 {
				for j := range 8 {
					w.arrived[j]++
				}
			}
			w.polls(1)
			w.wantReplicas(0, 1)
		}
	})
	t.Run("a carried reading is no measurement", func(t *testing.T) {
		t.Parallel()
		w := learnt(t, sized())
		before := w.memory.Sizing.Short
		w.plant.run(15 * time.Second)
		l := w.measure(w.story.now.Add(15 * time.Second))
		for i := range l.Partitions {
			l.Partitions[i].Measured = w.story.now
		}
		w.story.poll(15*time.Second, func(time.Time) changefeed.ProcessorLag { return l })
		if w.memory.Arrival != nil || w.memory.Sizing.Short != before {
			t.Errorf("by a reading of an earlier tick %v arrive, and the mean is %v", w.memory.Arrival, w.memory.Sizing.Short)
		}
	})
}

func TestACapacityIsBelievedWithinLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	// Eight partitions bring 10 a second each, and nothing moves.
	input := func() sizing.Input {
		in := sizing.Input{Now: now, Replicas: 1, Threshold: 2, Capacity: 5, LeaseExpiration: time.Minute, Memory: sizing.Memory{
			Time: now.Add(-15 * time.Second), Known: true, Short: 80, Proven: true, Partitions: map[string]sizing.Partition{},
		}}
		in.Lag.Time = now
		for p := range 8 {
			lease := strconv.Itoa(p)
			in.Lag.Partitions = append(in.Lag.Partitions, changefeed.Partition{Lease: lease})
			in.Memory.Partitions[lease] = sizing.Partition{Known: true, Arrival: 10}
		}
		return in
	}
	t.Run("one that is only a bound asks for no more than there are while nothing waits", func(t *testing.T) {
		t.Parallel()
		in := input()
		in.Memory.Proven = false
		if a := sizing.Size(in); a.Needed != 8 || a.Replicas != 1 {
			t.Errorf("%d are needed, and it asks for %d, want 8 and 1", a.Needed, a.Replicas)
		} else if why := a.Reasons[1].Why; !strings.HasSuffix(why, "no more than now") {
			t.Errorf("it says %q", why)
		}
	})
	t.Run("a window that ends with a batch that may have begun long before shows little", func(t *testing.T) {
		t.Parallel()
		in := input()
		in.Memory.Owners = map[string]sizing.Owner{"a": {Since: now.Add(-time.Minute), Done: 10, Pending: 800, Largest: 4}}
		in.Memory.Partitions["0"] = sizing.Partition{Time: in.Memory.Time, Known: true, Arrival: 10, Session: 1800, Checkpoint: 1000}
		in.Lag.Partitions[0] = changefeed.Partition{Lease: "0", Owner: "a", LeaseTime: now, Lag: new(int64(450)), SessionLSN: new(int64(1950)), CheckpointLSN: new(int64(1500))}
		if a := sizing.Size(in); a.Capacity != 5 {
			t.Errorf("510 in a minute, 500 of them at its end, make a capacity of %.3g of 5", a.Capacity)
		}
	})
	t.Run("a first batch of 500 may have taken longer than the 5 s between two polls", func(t *testing.T) {
		t.Parallel()
		for span, want := range map[time.Duration]float64{5 * time.Second: 500 / 5 * (1 - math.Exp(-5.0/45)), 15 * time.Second: 500 / 15.0} {
			in := input()
			in.Capacity, in.Memory.Proven, in.Memory.Time = 0, false, now.Add(-span)
			in.Memory.Partitions["0"] = sizing.Partition{Time: in.Memory.Time, Known: true, Arrival: 10, Session: 1800, Checkpoint: 1000}
			in.Lag.Partitions[0] = changefeed.Partition{Lease: "0", Owner: "a", LeaseTime: now, Lag: new(int64(450)), SessionLSN: new(int64(1950)), CheckpointLSN: new(int64(1500))}
			if got := sizing.Size(in).Capacity; math.Abs(got-want) > 0.001 {
				t.Errorf("between polls of %s it makes a capacity of %v, want %v", span, got, want)
			}
		}
	})
	// behind has two owners that did 450 in a window of a minute, 150 of them in one batch. Both were seen behind at each
	// poll, and one is not at this one if it has no lag.
	behind := func(believed float64, lags ...int64) sizing.Input {
		in := input()
		in.Capacity, in.Memory.Owners = believed, map[string]sizing.Owner{}
		for p, lag := range lags {
			lease, owner, age := strconv.Itoa(p), string(rune('a'+p)), min(lag, 121)
			in.Memory.Owners[owner] = sizing.Owner{Since: now.Add(-time.Minute), Done: 450, Pending: 200, Largest: 150, Behind: true}
			in.Memory.Partitions[lease] = sizing.Partition{Time: in.Memory.Time, Known: true, Arrival: 10, Session: 1000, Checkpoint: 850}
			in.Lag.Partitions[p] = changefeed.Partition{Lease: lease, Owner: owner, LeaseTime: now, Lag: &lag, Age: &age, SessionLSN: new(1000 + lag), CheckpointLSN: new(int64(1000))}
		}
		return in
	}
	t.Run("that a replica does less than was known is proven by owners with changes of two minutes", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			known  float64 // they do 10
			age    int64
			proven bool
		}{{20, 120, false}, {20, 121, true}, {10, 45, true}, {10.5, 45, true}, {10.6, 45, false}} {
			in := behind(c.known, c.age, c.age)
			in.Memory.Proven = false
			if got := sizing.Size(in).Memory.Proven; got != c.proven {
				t.Errorf("10/s where %v/s were known, and changes of %d s: proven %t, want %t", c.known, c.age, got, c.proven)
			}
		}
	})
	t.Run("what they did counts by the share of the owners that show it", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			believed float64
			lagOfB   int64
			want     float64
		}{{20, 400, 20 - 10*2.0/3}, {20, 0, 20 - 10/3.0}, {5, 400, 5 + 5*2.0/3}, {5, 0, 5 + 5/3.0}} {
			if got := sizing.Size(behind(c.believed, 400, c.lagOfB)).Capacity; math.Abs(got-c.want) > 0.001 {
				t.Errorf("owners show 10/s where %v/s were believed, and %d wait for the second: %v, want %v", c.believed, c.lagOfB, got, c.want)
			}
		}
	})
	t.Run("five replicas go up to twice the count of step 2 while changes wait, or stay up to twice its mean over an hour", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			step2 int
			mean  float64
			waits bool
			want  int
			why   string // of the limit
		}{
			{1, 1, false, 3, "nor than 2 × the mean"}, // 3: a scale-in leaves half of five
			{1, 1.8, false, 4, "nor than 2 × the mean"},
			{1, 3, false, 5, "nor than 2 × the mean"},
			{2, 1.4, false, 3, "nor than 2 × the mean"},
			{1, 1, true, 3, "nor than 2 × the mean"},
			{2, 1, true, 4, "no more than twice what step 2 asks for"},
			{3, 1, true, 6, "no more than twice what step 2 asks for"},
			{4, 1, true, 8, "80/s arrive"}, // no limit
			{1, 0, false, 3, "no more than step 2 asks for"},
		} {
			in := input()
			in.Replicas, in.Threshold, in.Memory.Threshold, in.Memory.Time = 5, c.step2, c.mean, now
			in.Memory.Enough = now.Add(-time.Hour)
			if c.waits {
				in.Lag.Partitions[0].Lag, in.Lag.Partitions[0].Age = new(int64(100)), new(int64(60))
			}
			a := sizing.Size(in)
			if a.Needed != 8 || a.Replicas != c.want {
				t.Errorf("step 2 asks for %d, and for %v in the mean, waits: %t: five become %d, want %d", c.step2, c.mean, c.waits, a.Replicas, c.want)
			}
			if !slices.ContainsFunc(a.Reasons[:min(2, len(a.Reasons))], func(r sizing.Reason) bool { return strings.Contains(r.Why, c.why) }) {
				t.Errorf("step 2 asks for %d, and for %v in the mean, waits: %t: no reason has %q: %+v", c.step2, c.mean, c.waits, c.why, a.Reasons)
			}
		}
	})
	t.Run("once changes have waited for an hour, whatever the replicas, step 2 is enough", func(t *testing.T) {
		t.Parallel()
		in := input()
		in.Replicas, in.Threshold, in.Memory.Threshold = 2, 2, 2
		in.Lag.Partitions[0].Lag, in.Lag.Partitions[0].Age = new(int64(100)), new(int64(60))
		asks := func() sizing.Answer {
			in.Memory.ScaleOut = sizing.ScaleOut{} // no scale-out is taken back in this case
			a := sizing.Size(in)
			in.Memory, in.Now, in.Lag.Time = a.Memory, in.Now.Add(15*time.Second), in.Lag.Time.Add(15*time.Second)
			in.Memory.Short, in.Memory.Partitions = 80, input().Memory.Partitions
			return a
		}
		first := 0 // the first poll that asks for no more than step 2
		for poll := 1; poll <= 400 && first == 0; poll++ {
			if a := asks(); a.Replicas == 2 {
				first = poll
				if why := a.Reasons[1].Why; !strings.Contains(why, "whatever the replicas: no more than step 2 asks for") {
					t.Errorf("it says %q", why)
				}
			} else if a.Replicas != 4 {
				t.Fatalf("poll %d asks for %d, want twice the two of step 2", poll, a.Replicas)
			}
		}
		if want := int(math.Ceil(30 * 60 / 15 * math.Log(10))); first < want || first > want+1 { // 1 - exp(-t / 30 min) = 0.9
			t.Errorf("poll %d was the first that asked for two, want %d", first, want)
		}
		for in.Lag.Partitions[0].Age = new(int64(0)); in.Memory.Waiting > 0.8; {
			asks()
		}
		in.Lag.Partitions[0].Age = new(int64(60))
		if a := asks(); a.Replicas != 4 {
			t.Errorf("after some minutes in which none waited, it asks for %d, want 4", a.Replicas)
		}
		in.Threshold = 0
		if asks(); in.Memory.Waiting != 0 {
			t.Errorf("while it is inactive, changes wait for %v of the time", in.Memory.Waiting)
		}
	})
	t.Run("the mean of step 2 over an hour begins at zero: the count of a start keeps no replicas", func(t *testing.T) {
		t.Parallel()
		in := input()
		in.Threshold, in.Memory = 64, sizing.Memory{}
		for _, want := range []float64{0, 64 * (1 - math.Exp(-15.0/3600))} {
			in.Memory = sizing.Size(in).Memory
			if got := in.Memory.Threshold; math.Abs(got-want) > 0.001 {
				t.Errorf("with 64 at each poll it is %v, want %v", got, want)
			}
			in.Lag.Time = in.Lag.Time.Add(15 * time.Second)
		}
	})
	t.Run("a doubling must take a tenth from the fullest owner that cannot keep up", func(t *testing.T) {
		t.Parallel()
		for each, want := range map[float64]int{1: 4, 2: 8} { // with four replicas it does 9.5 and one other, with eight 9.5
			in := input()
			in.Capacity, in.Threshold, in.Memory.Short = 10, 8, 9.5+7*each
			for p := range 8 {
				in.Memory.Partitions[strconv.Itoa(p)] = sizing.Partition{Known: true, Arrival: each}
			}
			in.Memory.Partitions["0"] = sizing.Partition{Known: true, Arrival: 9.5}
			in.Lag.Partitions[0].Lag, in.Lag.Partitions[0].Age = new(int64(10000)), new(int64(600))
			if a := sizing.Size(in); a.Needed != want {
				t.Errorf("one brings 9.5/s, seven others %v/s each, where a replica does 10: %d are needed, want %d", each, a.Needed, want)
			}
		}
	})
	t.Run("the backlog of one partition asks for its owner, and for no fleet", func(t *testing.T) {
		t.Parallel()
		in := input()
		in.Capacity, in.Threshold, in.Memory.Short, in.CatchUpWithin = 10, 8, 18, 90*time.Second
		for p := range 8 {
			in.Memory.Partitions[strconv.Itoa(p)] = sizing.Partition{Known: true, Arrival: 2}
		}
		in.Memory.Partitions["0"] = sizing.Partition{Known: true, Arrival: 4}
		in.Lag.Partitions[0].Lag, in.Lag.Partitions[0].Age = new(int64(10000)), new(int64(600))
		// It asks for 10, 5 of them of its owner, and the others for 14. With three replicas its owner would get 5 + 19 * 2/7.
		if a := sizing.Size(in); a.Needed != 4 {
			t.Errorf("%d are needed, want 4: %+v", a.Needed, a.Reasons)
		}
	})
	t.Run("a scale-out has not helped if the same still waits after three minutes", func(t *testing.T) {
		t.Parallel()
		for after, held := range map[time.Duration]bool{179 * time.Second: false, 180 * time.Second: true} {
			in := input()
			in.Replicas, in.Threshold, in.Capacity = 8, 8, 10
			in.Memory.Time, in.Memory.Done = now.Add(-time.Millisecond), 70
			in.Memory.ScaleOut = sizing.ScaleOut{At: now.Add(-after), From: 4, Rate: 70}
			for p := range in.Lag.Partitions {
				q := &in.Lag.Partitions[p]
				q.Owner, q.LeaseTime, q.Lag, q.Age = q.Lease, now, new(int64(1)), new(int64(300))
			}
			if got := sizing.Size(in).Memory.ScaleOut.Until.After(now); got != held {
				t.Errorf("%s after a scale-out from four: held %t, want %t", after, got, held)
			}
		}
	})
	t.Run("after a further scale-out, leases move again for three minutes", func(t *testing.T) {
		t.Parallel()
		for asks, held := range map[int]bool{4: true, 5: false} { // of step 2, which may be doubled; eight run
			in := input()
			in.Replicas, in.Threshold, in.Capacity = 8, asks, 10
			in.Memory.Short, in.Memory.Done = 800, 70
			in.Memory.ScaleOut = sizing.ScaleOut{At: now.Add(-time.Hour), From: 4, Rate: 70}
			for p := range 16 {
				lease := strconv.Itoa(p)
				in.Lag.Partitions = append(in.Lag.Partitions[:p], changefeed.Partition{Lease: lease, Owner: strconv.Itoa(p % 8), LeaseTime: now, Lag: new(int64(1)), Age: new(int64(300))})
			}
			if s := sizing.Size(in).Memory.ScaleOut; s.Until.After(now) != held || s.At.Equal(now) == held {
				t.Errorf("step 2 asks for %d: %+v, held is to be %t", asks, s, held)
			}
		}
	})
	t.Run("the batches of an owner that falls behind take minutes: their length excuses no wait of two", func(t *testing.T) {
		t.Parallel()
		for age, want := range map[int64]string{120: " 0 have waited", 121: " 7600 have waited"} {
			in := input()
			in.Memory.Partitions["0"] = sizing.Partition{Known: true, Arrival: 10, Batch: 500}
			in.Lag.Partitions[0] = changefeed.Partition{Lease: "0", Lag: new(int64(10000)), Age: &age}
			if a := sizing.Size(in); !strings.Contains(a.Reasons[0].Why, want) {
				t.Errorf("after %d s: %q, want%s", age, a.Reasons[0].Why, want)
			}
		}
	})
	t.Run("a partition gets an owner for itself if a replica can hold what it brings", func(t *testing.T) {
		t.Parallel()
		for first, want := range map[float64]int{4.5: 8, 5.5: 3} { // the second asks for one replica, and seven others for two
			in := input()
			in.Threshold, in.Memory.Short = 8, first+7
			for p := range 8 {
				in.Memory.Partitions[strconv.Itoa(p)] = sizing.Partition{Known: true, Arrival: 1}
			}
			in.Memory.Partitions["0"] = sizing.Partition{Known: true, Arrival: first}
			a := sizing.Size(in)
			if a.Needed != want {
				t.Errorf("it brings %v/s, seven others 1/s each, where a replica does 5: %d are needed, want %d", first, a.Needed, want)
			}
			if first > in.Capacity != strings.Contains(a.Reasons[0].Why, "partition 0 alone brings") {
				t.Errorf("it brings %v/s where a replica does 5: %q", first, a.Reasons[0].Why)
			}
		}
	})
}

// TestAnUpgradeTakesNoMoreThanAThirdAtATime: the State of an earlier release, or a lost one, does
// not know how the load varies. Replicas that are busy now may be idle in a minute.
func TestAnUpgradeTakesNoMoreThanAThirdAtATime(t *testing.T) {
	t.Parallel()
	p := newPlant(64, 20, 25, 10*time.Second) // as much is pending as with the SDKs
	p.spread(64)
	policy := sized()
	policy.Behavior.ScaleDown.StabilizationWindow = 5 * time.Minute
	w := polled(t, p, policy)
	w.memory.Replicas, w.memory.Active, w.memory.DrainPerReplica = new(64), true, 25
	w.follow = true
	w.polls(20)
	for i := range p.arrive {
		p.arrive[i] = 1
	}
	before, since := 64, w.story.now
	for range 4 * 55 {
		w.polls(1)
		switch now := w.last.Replicas; {
		case now < before*2/3 || now < before && w.story.now.Sub(since) < 5*time.Minute:
			t.Fatalf("%d replicas after %d, %s after the last scale-in: %+v", now, before, w.story.now.Sub(since), w.last.Reasons)
		case now != before:
			before, since = now, w.story.now
		}
	}
	w.wantReplicas(3, 8)
}

// TestSizingKnowsWhatItCannotKnow has loads that mislead, for hours, a rule that trusts its
// measurements too much.
func TestSizingKnowsWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	follow := func(t *testing.T, p *plant, owners int) *watched {
		p.spread(owners)
		policy := sized()
		policy.Behavior.ScaleDown.StabilizationWindow = 5 * time.Minute
		w := polled(t, p, policy)
		w.memory.Replicas, w.memory.Active, w.follow = &owners, true, true
		return w
	}
	t.Run("batches about as long as the poll interval are no backlog: the replicas do not climb", func(t *testing.T) {
		t.Parallel()
		for _, batch := range []time.Duration{10 * time.Second, 15 * time.Second, 20 * time.Second, 45 * time.Second} {
			// until then the threshold counts
			w := follow(t, newPlant(16, 5, 25, batch), 4).polls(4 * 20)
			for range 4 * 60 * 2 {
				w.polls(1)
				w.wantReplicas(2, 11)
			}
		}
	})
	t.Run("a rate that was measured too low does not confirm itself", func(t *testing.T) {
		t.Parallel()
		p := newPlant(16, 5, 25, 0)
		p.database = 60
		w := follow(t, p, 4).polls(4 * 15)
		p.database = 0
		w.polls(4 * 60 * 3)
		w.wantReplicas(3, 6)
	})
	t.Run("once nothing is proven any more, a scale-in leaves half", func(t *testing.T) {
		t.Parallel()
		p := newPlant(64, 20, 25, 0)
		p.spread(40)
		w := polled(t, p, sized()).polls(20)
		w.follow = true
		before := 0
		for range 4 * 60 * 3 {
			w.polls(1)
			if now := w.last.Replicas; now < before/2 {
				t.Fatalf("at %s: %d replicas after %d: %+v", w.story.now.Sub(start), now, before, w.last.Reasons)
			}
			before = w.last.Replicas
		}
	})
	t.Run("a backlog of a slow handler is seconds of work, however few changes it is", func(t *testing.T) {
		t.Parallel()
		w := follow(t, newPlant(8, 0.5, 2, 10*time.Second), 3).polls(40)
		before := w.last.Replicas
		w.away(90 * time.Second) // 360 changes: three minutes of one replica's work
		w.polls(4)
		w.wantReplicas(before+1, 8)
	})
	t.Run("a handler that gets half as fast is noticed within two minutes", func(t *testing.T) {
		t.Parallel()
		w := follow(t, newPlant(8, 10, 25, 0), 4).polls(60)
		before := w.last.Replicas
		w.replica /= 2
		w.polls(8)
		w.wantReplicas(before+1, 8)
	})
}
