package scaling_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// plant is a simulated processor whose rates the test knows: what arrives in each partition, and
// how fast its owners work.
type plant struct {
	now    time.Time
	arrive []float64 // changes per second and partition
	// changes per second that one owner processes, shared evenly among its partitions with work
	replica float64
	// changes per second that the handler processes of one partition; 0 = only replica limits it
	handler  float64
	batch    time.Duration // time between two checkpoints of a partition; 0 = one second
	owners   []string      // of each partition; "" = nobody
	database float64       // changes per second that all owners together process; 0 = no limit

	arrived, worked, done []float64 // by partition; done = checkpointed
}

func newPlant(partitions int, each, replica float64, batch time.Duration) *plant {
	p := &plant{now: start, replica: replica, batch: batch, owners: make([]string, partitions)}
	p.arrive, p.arrived, p.worked, p.done = make([]float64, partitions), make([]float64, partitions), make([]float64, partitions), make([]float64, partitions)
	for i := range partitions {
		p.arrive[i] = each
	}
	return p
}

// spread assigns the partitions to n owners, evenly by count.
func (p *plant) spread(owners int) {
	for i := range p.owners {
		p.owners[i] = ""
		if owners > 0 {
			p.owners[i] = fmt.Sprint("worker-", i*owners/len(p.owners))
		}
	}
}

// run advances the time.
func (p *plant) run(d time.Duration) {
	for range int(d / time.Second) {
		p.now = p.now.Add(time.Second)
		p.work()
		for i, o := range p.owners {
			p.arrived[i] += p.arrive[i]
			// Partitions write their checkpoints at different moments.
			if at := p.now.Unix() + int64(i)*7; o != "" && (p.batch == 0 || at%int64(p.batch/time.Second) == 0) {
				p.done[i] = p.worked[i]
			}
		}
	}
}

// work is one second of every owner. What one partition leaves of its share goes to the owner's
// others.
func (p *plant) work() {
	left, spare := map[string]float64{}, make([]float64, len(p.owners))
	database := p.database
	if database == 0 {
		database = math.Inf(1)
	}
	for i, o := range p.owners {
		left[o] = p.replica
		if spare[i] = p.handler; p.handler == 0 {
			spare[i] = p.replica
		}
	}
	for range 8 {
		busy := map[string]int{}
		for i, o := range p.owners {
			if o != "" && p.arrived[i] > p.worked[i] && spare[i] > 0 {
				busy[o]++
			}
		}
		share, all := map[string]float64{}, 0
		for _, n := range busy {
			all += n
		}
		for o, n := range busy {
			share[o] = min(left[o]/float64(n), database/float64(all))
		}
		for i, o := range p.owners {
			if busy[o] == 0 {
				continue
			}
			did := max(0, min(share[o], spare[i], p.arrived[i]-p.worked[i]))
			p.worked[i] += did
			spare[i] -= did
			left[o] -= did
			database -= did
		}
	}
}

// measure returns what a poll would find.
func (p *plant) measure(at time.Time) changefeed.ProcessorLag {
	l := changefeed.ProcessorLag{Time: at}
	for i := range p.owners {
		session, checkpoint := int64(p.arrived[i])+1, int64(p.done[i])+1
		lag := session - checkpoint
		m := changefeed.Partition{
			Lease: fmt.Sprint(i), Owner: p.owners[i], LeaseTime: at, Status: changefeed.StatusOK, Lag: &lag,
			SessionLSN: &session, CheckpointLSN: &checkpoint, Position: fmt.Sprint(checkpoint),
		}
		if lag > 0 {
			m.Status, m.Age = changefeed.StatusLagging, new(int64(float64(lag)/max(1, p.arrive[i])))
		}
		l.Partitions = append(l.Partitions, m)
	}
	return l
}

// watched is a plant that is polled every 15 s.
type watched struct {
	*plant
	*story
	follow bool // the plant gets the decided replicas before the next poll
}

func polled(t *testing.T, p *plant, policy scaling.Policy) *watched {
	return &watched{plant: p, story: tell(t, policy)}
}

// polls runs the plant for n polls.
func (w *watched) polls(n int) *watched {
	for range n {
		w.plant.run(15 * time.Second)
		d := w.poll(15*time.Second, w.measure)
		if w.follow && d != nil {
			w.spread(d.Replicas)
		}
	}
	return w
}

// away advances the time without owners and without polls.
func (w *watched) away(d time.Duration) {
	owners := slices.Clone(w.owners)
	w.spread(0)
	w.plant.run(d)
	w.plant.owners = owners
	w.story.now = w.story.now.Add(d)
}

// reason is the sentence of a step of the last decision, "" if the step did not act.
func (w *watched) reason(step string) string {
	w.t.Helper()
	if w.last == nil {
		w.t.Fatal("nothing was decided")
	}
	i := slices.IndexFunc(w.last.Reasons, func(r scaling.Reason) bool { return r.Step == step })
	if i < 0 {
		return ""
	}
	return w.last.Reasons[i].Why
}

func (w *watched) wantReason(step, part string) {
	w.t.Helper()
	if got := w.reason(step); !strings.Contains(got, part) {
		w.t.Errorf("%s says %q, want %q in it; the decision is %s", step, got, part, describe(w.last))
	}
}

func (w *watched) wantReplicas(least, most int) {
	w.t.Helper()
	if got := w.last.Replicas; got < least || got > most {
		w.t.Errorf("at %s: %d replicas, want %d to %d: %+v", w.story.now.Sub(start), got, least, most, w.last.Reasons)
	}
}

// held polls until n replicas are asked for. It returns how long before that n would have been
// enough.
func (w *watched) held(replicas int) (held time.Duration) {
	w.t.Helper()
	would := fmt.Sprint(replicas, " would do, for ")
	for range 80 {
		w.polls(1)
		switch {
		case w.last.Replicas == replicas:
			return held
		case strings.HasPrefix(w.reason("level"), would):
			held += 15 * time.Second
		}
	}
	w.t.Errorf("after 20 minutes: %+v", w.last.Reasons)
	return held
}
