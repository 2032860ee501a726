package poller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/state"
)

// planned is a candidate by NAME[/GROUP]:LEASES[@CONTAINER], with ~ for one whose row could not be read, ! for one
// whose throughput follows, and - for one that is not due.
func planned(text string, now time.Time) candidate {
	c := candidate{Processor: &Processor{}, last: &state.State{AttemptedAt: now.Add(-time.Minute)}, leases: 1}
	c.unread, c.Throughput = strings.Contains(text, "~"), strings.Contains(text, "!")
	if strings.Contains(text, "-") {
		c.Schedule = after(now.Add(time.Hour))
	}
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("~!-", r) {
			return -1
		}
		return r
	}, text)
	text, container, _ := strings.Cut(text, "@")
	name, leases, _ := strings.Cut(text, ":")
	_, _ = fmt.Sscan(leases, &c.leases)
	name, c.Group, _ = strings.Cut(name, "/")
	c.Processor.Processor = estimator.Processor{Name: name, LeaseContainer: cosmosContainer(container)}
	return c
}

func cosmosContainer(id string) cosmos.Container { return cosmos.Container{ID: id} }

// after is a schedule that is due once.
type after time.Time

func (a after) Next(time.Time) time.Time { return time.Time(a) }

func TestAPlanSaysWhatIsPolledHandedOverAndLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names := map[stage]string{elsewhere: "elsewhere", resting: "resting", polling: "polling", unread: "unread"}
	for _, c := range []struct {
		rule   string
		mode   Mode
		some   string
		before int // leases that were planned before
		size   int
		want   string // stages, then shards
	}{
		{"what is due is polled, and the rest rests", Mode{}, "a b- c~ d~-", 0, 0, "polling resting unread unread"},
		{"by hand whatever its schedule", Mode{All: true}, "a b- c~", 0, 0, "polling polling unread"},
		{"by hand those alone that are named", Mode{All: true, Only: []string{"b"}}, "a b- c~", 0, 0, "elsewhere polling elsewhere"},
		{"a shard is polled unless it was since, and the others of its groups are looked at", Mode{Shard: &Shard{Tick: now, Names: []string{"a", "b"}}}, "a b- c", 0, 0, "polling polling elsewhere"},
		{"a redelivered shard", Mode{Shard: &Shard{Tick: now.Add(-time.Minute), Names: []string{"a", "b"}}}, "a b c~", 0, 0, "resting resting unread"},
		{"few leases are handed over to nobody", Mode{}, "a:5 b:5", 0, 10, "polling polling"},
		{"more are, all of them", Mode{}, "a:5 b:6", 0, 10, "elsewhere elsewhere | a | b"},
		{"an earlier wave counts", Mode{}, "a:5", 6, 10, "elsewhere | a"},
		{"leases in one container stay together", Mode{}, "a:5@x b:5@y c:5@x d:5@y", 0, 10, "elsewhere elsewhere elsewhere elsewhere | a c | b d"},
		{"what is not due, unread, or followed by throughput stays", Mode{}, "a:9 b:9- c:9~ d:9!", 0, 10, "elsewhere resting unread polling | a"},
		{"a group stays together", Mode{}, "a/g:6 b:6 c/g:6", 0, 10, "elsewhere elsewhere elsewhere | a c | b"},
		{"and here where one of it does", Mode{}, "a/g:6 b:6 c/g:6!", 0, 10, "polling elsewhere polling | b"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var some []candidate
			var all []Processor
			for _, text := range strings.Fields(c.some) {
				some = append(some, planned(text, now))
				all = append(all, *some[len(some)-1].Processor)
			}
			plan := newPlan(newScope(c.mode, now, all), some, c.before, c.size, all)
			var got []string
			for _, s := range plan.stages {
				got = append(got, names[s])
			}
			for _, s := range plan.shards {
				got = append(got, "|")
				for _, i := range s.members {
					got = append(got, some[i].Name)
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOfShardsThatNobodyTakesThePlanTakesTheOneThatHasWaitedTheLongest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	some := []candidate{planned("a:9", now), planned("b:9", now), planned("c:9", now)}
	some[1].last.AttemptedAt = now.Add(-time.Hour)
	plan := newPlan(newScope(Mode{}, now, nil), some, 0, 10, nil)
	plan.take(plan.shards, some)
	if want := []stage{elsewhere, polling, elsewhere}; !slices.Equal(plan.stages, want) {
		t.Errorf("got %v, want %v", plan.stages, want)
	}
}

// every is a timer.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Add(time.Duration(e)) }

func TestTheTimeOfATickIsDivided(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	b := newBudget(time.Minute, every(15*time.Second), now)
	want := budget{row: 10 * time.Second, containers: 12 * time.Second, signals: 5 * time.Second, drain: 5 * time.Second, reads: now.Add(12 * time.Second)}
	if b != want {
		t.Errorf("got %+v, want %+v", b, want)
	}
	for _, c := range []struct {
		rule               string
		of                 budget
		at, left           time.Duration
		wantMost, wantPace time.Duration
	}{
		{"until the next tick is due", b, 0, 50 * time.Second, 40 * time.Second, 12 * time.Second},
		{"what was read late waits for less", b, 10 * time.Second, 50 * time.Second, 40 * time.Second, 2 * time.Second},
		{"after its slot nothing waits", b, 20 * time.Second, 40 * time.Second, 32 * time.Second, 0},
		{"late in the tick", newBudget(time.Minute, every(time.Minute), now), 0, 10 * time.Second, 8 * time.Second, 8 * time.Second},
		{"without a timer", newBudget(time.Minute, nil, now), 0, time.Minute, 48 * time.Second, 48 * time.Second},
	} {
		if most, paced := c.of.measuring(now.Add(c.at), c.left); most != c.wantMost || paced != c.wantPace {
			t.Errorf("%s: %s and %s, want %s and %s", c.rule, most, paced, c.wantMost, c.wantPace)
		}
	}
}
