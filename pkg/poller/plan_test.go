package poller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/state"
)

// planned is a processor by NAME[/GROUP]:LEASES[@CONTAINER], with ~ for one whose row could not be read, ! for one
// whose throughput follows, and - for one that is not due.
func planned(text string, now time.Time) *subject {
	p := &Processor{Throughput: strings.Contains(text, "!")}
	d := &subject{processor: p}
	if strings.Contains(text, "~") {
		d.err = errors.New("unread")
	}
	if strings.Contains(text, "-") {
		p.Schedule = after(now.Add(time.Hour))
	}
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("~!-", r) {
			return -1
		}
		return r
	}, text)
	text, container, _ := strings.Cut(text, "@")
	name, leases, _ := strings.Cut(text, ":")
	d.last = &state.State{AttemptedAt: now.Add(-time.Minute)}
	_, _ = fmt.Sscan(leases, &d.last.Memory.Partitions)
	d.name, p.Group, _ = strings.Cut(name, "/")
	p.Processor = estimator.Processor{Name: d.name, LeaseContainer: cosmosContainer(container)}
	return d
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
			var some []*subject
			var all []Processor
			for _, text := range strings.Fields(c.some) {
				some = append(some, planned(text, now))
				all = append(all, *some[len(some)-1].processor)
			}
			due := c.before
			shards := newScope(c.mode, now, all).plan(some, &due, c.size, all)
			var got []string
			for _, d := range some {
				got = append(got, names[d.stage])
			}
			for _, s := range shards {
				got = append(got, "|")
				for _, d := range s.polls {
					got = append(got, d.name)
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
	some := []*subject{planned("a:9", now), planned("b:9", now), planned("c:9", now)}
	some[1].last.AttemptedAt = now.Add(-time.Hour)
	longest(newScope(Mode{}, now, nil).plan(some, new(int), 10, nil)).set(polling)
	if got, want := []stage{some[0].stage, some[1].stage, some[2].stage}, []stage{elsewhere, polling, elsewhere}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// every is a timer.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Add(time.Duration(e)) }

func TestTheTimeOfATickIsDivided(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	b := newBudget(time.Minute, every(15*time.Second), now)
	want := budget{row: 10 * time.Second, containers: 12 * time.Second, reads: now.Add(12 * time.Second)}
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
	} {
		if most, paced := c.of.measuring(now.Add(c.at), c.left); most != c.wantMost || paced != c.wantPace {
			t.Errorf("%s: %s and %s, want %s and %s", c.rule, most, paced, c.wantMost, c.wantPace)
		}
	}
}
