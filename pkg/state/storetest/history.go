package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

func historyRules() []rule {
	hour := polled().Truncate(time.Hour)
	at := func(offset time.Duration) state.State { return sampled("orders", hour.Add(offset)) }
	return []rule{
		{"a processor of which nothing is stored has no history", func(t *testing.T, store state.Store) {
			wantHistory(t, store, state.State{Processor: "orders"})
			commit(t, store, sampled("other", hour), nil)
			wantSamples(t, history(t, store, "orders", hour.Add(-time.Hour), hour.Add(time.Hour)))
		}},
		{"a sample comes back with every field", func(t *testing.T, store state.Store) {
			want := full("orders", 3)
			arrival := 12.75
			want.Memory.Arrival, want.Memory.DrainPerReplica = &arrival, 1.0/3
			want.Lag.Error = ""
			commit(t, store, want, nil)
			wantHistory(t, store, want)
		}},
		{"a sample of a poll that decided and measured nothing comes back", func(t *testing.T, store state.Store) {
			commit(t, store, small("orders", 1), nil)
			wantHistory(t, store, small("orders", 1))
		}},
		{"text of every kind comes back in a sample", func(t *testing.T, store state.Store) {
			want := at(0)
			want.Decision = &scaling.Decision{Direction: scaling.None, Reasons: []scaling.Reason{
				{Step: "threshold", Why: "5 > 4 & \"ünï'\" \\u00e9 😀 and\r\na line"}, {Step: "", Why: "2026-01-01T00:00:00Z"}, {Why: "007"},
			}}
			commit(t, store, want, nil)
			wantHistory(t, store, want)
		}},
		{"a State that was never polled leaves no sample", func(t *testing.T, store state.Store) {
			commit(t, store, state.State{Processor: "orders"}, nil)
			wantSamples(t, history(t, store, "orders", time.Time{}, hour.Add(time.Hour)))
		}},
		{"samples come oldest first, over the borders of hours, days and years", func(t *testing.T, store state.Store) {
			newYear := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			var want []state.State
			for _, offset := range []time.Duration{
				-400 * 24 * time.Hour, -25 * time.Hour, -time.Hour, -30 * time.Second, -time.Nanosecond,
				0, 15 * time.Second, time.Hour - time.Millisecond, time.Hour, 9 * time.Hour, 10 * time.Hour, 31 * 24 * time.Hour,
			} {
				want = append(want, sampled("orders", newYear.Add(offset)))
			}
			for i := range want { // the order of arrival does not count
				commit(t, store, want[(i*5+3)%len(want)], nil)
			}
			wantSamples(t, history(t, store, "orders", time.Time{}, newYear.AddDate(100, 0, 0)), want...)
		}},
		{"a time in another zone is the same time", func(t *testing.T, store state.Store) {
			zone := time.FixedZone("", -(3*3600 + 1800))
			want := sampled("orders", hour.Add(20*time.Minute).In(zone))
			commit(t, store, want, nil)
			wantSamples(t, history(t, store, "orders", hour.In(zone), hour.Add(time.Hour).In(zone)), want)
			if err := store.Prune(t.Context(), "orders", hour.Add(59*time.Minute).In(zone)); err != nil {
				t.Fatal(err)
			}
			wantSamples(t, history(t, store, "orders", hour, hour.Add(time.Hour)), want)
		}},
		{"the range has its beginning and not its end", func(t *testing.T, store state.Store) {
			samples := []state.State{at(0), at(21 * time.Second), at(time.Hour - time.Second), at(time.Hour), at(2 * time.Hour)}
			for _, s := range samples {
				commit(t, store, s, nil)
			}
			for _, first := range samples {
				for _, last := range samples {
					for _, nudge := range []time.Duration{-time.Nanosecond, 0, time.Nanosecond} {
						from, to := first.AttemptedAt.Add(nudge), last.AttemptedAt.Add(nudge)
						var want []state.State
						for _, s := range samples {
							if !s.AttemptedAt.Before(from) && s.AttemptedAt.Before(to) {
								want = append(want, s)
							}
						}
						wantSamples(t, history(t, store, "orders", from, to), want...)
					}
				}
			}
		}},
		{"of the samples of the same 15 s the one committed last stays", func(t *testing.T, store state.Store) {
			commit(t, store, at(14*time.Second), nil)
			commit(t, store, at(15*time.Second), nil)
			commit(t, store, at(29*time.Second), nil)
			commit(t, store, at(22*time.Second), nil)
			commit(t, store, at(30*time.Second), nil)
			wantSamples(t, history(t, store, "orders", hour, hour.Add(time.Hour)), at(14*time.Second), at(22*time.Second), at(30*time.Second))
		}},
		{"a smaller sample leaves nothing of the bigger one before it", func(t *testing.T, store state.Store) {
			commit(t, store, full("orders", 3), nil)
			want := state.State{Processor: "orders", AttemptedAt: full("orders", 0).AttemptedAt}
			commit(t, store, want, nil)
			wantHistory(t, store, want)
		}},
		{"processors do not see each other's samples, however alike their names", func(t *testing.T, store state.Store) {
			names := []string{"a", "a-b", "ab", "b", "history", "history-2026010203", "state"}
			for i, name := range names {
				commit(t, store, sampled(name, hour.Add(time.Duration(i)*time.Minute)), nil)
			}
			for i, name := range names {
				wantHistory(t, store, sampled(name, hour.Add(time.Duration(i)*time.Minute)))
			}
		}},
		{"a conflict leaves no sample", func(t *testing.T, store state.Store) {
			commit(t, store, sampled("other", hour), nil)
			wantConflict(t, store, load(t, store, "other").Version, at(0), nil)
			commit(t, store, at(time.Minute), event("orders", 1))
			old := load(t, store, "orders").Version
			commit(t, store, at(2*time.Minute), nil)
			wantConflict(t, store, old, at(3*time.Minute), nil)
			wantConflict(t, store, "", at(4*time.Minute), nil)
			wantConflict(t, store, load(t, store, "orders").Version, at(5*time.Minute), event("orders", 1))
			wantSamples(t, history(t, store, "orders", hour, hour.Add(time.Hour)), at(time.Minute), at(2*time.Minute))
		}},
		{"an event that is refused leaves no sample", func(t *testing.T, store state.Store) {
			if err := store.Commit(t.Context(), "", at(0), event("other", 1)); err == nil {
				t.Error("got no error")
			}
			wantHistory(t, store, state.State{Processor: "orders"})
		}},
		{"an hour of 240 samples with the longest reasons fits, and each has its last reason", func(t *testing.T, store state.Store) {
			reasons := make([]scaling.Reason, 30)
			for i := range reasons {
				reasons[i] = scaling.Reason{Step: "clamp", Replicas: i, Why: strings.Repeat("é<😀", 20)}
			}
			version := state.Version("")
			for i := range 240 {
				next := at(time.Duration(i) * 15 * time.Second)
				next.Decision = &scaling.Decision{Replicas: i, Reasons: reasons}
				if err := store.Commit(t.Context(), version, next, nil); err != nil {
					t.Fatalf("sample %d: %v", i, err)
				}
				version = load(t, store, "orders").Version
			}
			got := history(t, store, "orders", hour, hour.Add(time.Hour))
			if len(got) != 240 {
				t.Fatalf("got %d samples, want 240", len(got))
			}
			for i, sample := range got {
				kept := sample.Reasons
				if *sample.Replicas != i || len(kept) == 0 || len(kept) == len(reasons) || !slices.Equal(kept, reasons[len(reasons)-len(kept):]) {
					t.Fatalf("sample %d: %d replicas and %d reasons, or not the last ones", i, *sample.Replicas, len(kept))
				}
			}
		}},
		{"pruning removes the hours that have ended, and no later one", func(t *testing.T, store state.Store) {
			samples := []state.State{at(-50 * time.Hour), at(-time.Hour), at(-time.Second), at(0), at(time.Hour - time.Second), at(time.Hour)}
			for _, s := range samples {
				commit(t, store, s, nil)
			}
			for _, step := range []struct {
				before time.Time
				left   int
			}{
				{time.Time{}, 6},
				{hour.Add(-50 * time.Hour), 6},
				{hour.Add(-49*time.Hour - time.Nanosecond), 6},
				{hour.Add(-49 * time.Hour), 5},
				{hour.Add(-time.Nanosecond), 5},
				{hour, 3},
				{hour, 3},
				{hour.Add(time.Hour - time.Nanosecond), 3},
				{hour.Add(time.Hour), 1},
				{hour.Add(200 * time.Hour), 0},
			} {
				prune(t, store, "orders", step.before)
				wantSamples(t, history(t, store, "orders", time.Time{}, hour.Add(200*time.Hour)), samples[len(samples)-step.left:]...)
			}
		}},
		{"pruning leaves the state, the outbox, the version and other processors alone", func(t *testing.T, store state.Store) {
			for _, name := range []string{"a", "a-b", "ab"} {
				commit(t, store, small(name, 1), event(name, 1))
			}
			version := load(t, store, "a").Version
			prune(t, store, "a", polled().Add(1000*time.Hour))
			wantSamples(t, history(t, store, "a", time.Time{}, polled().Add(time.Hour)))
			if got := load(t, store, "a").Version; got != version {
				t.Errorf("got version %q, want %q", got, version)
			}
			for _, name := range []string{"a", "a-b", "ab"} {
				wantState(t, store, small(name, 1))
				if name != "a" {
					wantHistory(t, store, small(name, 1))
				}
			}
			wantEvents(t, outbox(t, store), event("a", 1), event("a-b", 1), event("ab", 1))
		}},
		{"having nothing to prune is no error", func(t *testing.T, store state.Store) {
			prune(t, store, "orders", polled())
			commit(t, store, state.State{Processor: "orders"}, nil)
			prune(t, store, "orders", polled())
		}},
		{"a history of many hours comes back whole, and two processes that prune it at once both succeed", func(t *testing.T, store state.Store) {
			const hours = 100
			var want []state.State
			for i := range hours {
				want = append(want, at(time.Duration(i)*time.Hour))
				commit(t, store, want[i], nil)
			}
			wantSamples(t, history(t, store, "orders", hour, hour.Add(hours*time.Hour)), want...)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := store.Prune(t.Context(), "orders", hour.Add((hours-1)*time.Hour)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			wantSamples(t, history(t, store, "orders", hour, hour.Add(hours*time.Hour)), want[hours-1])
		}},
		{"a finished hour comes back with every field, and a conflict leaves none", func(t *testing.T, store state.Store) {
			ended := at(0)
			ended.Finished = &state.Summary{
				Hour: hour.Add(-time.Hour), Seconds: 3599.75, OwnersKnown: 1800, ReplicaSeconds: 5400.5, Changes: 3, Owners: new(0),
				OverObjective: 15, WorstAge: new(int64(90)), RequestCharge: 12.25,
				StatusSeconds: map[changefeed.Status]float64{changefeed.StatusStalled: 15},
			}
			commit(t, store, ended, nil)
			lost := at(time.Hour)
			lost.Finished = &state.Summary{Hour: hour}
			wantConflict(t, store, "", lost, nil)
			if got := summaries(t, store, "orders", -9, 9); len(got) != 1 || !reflect.DeepEqual(got[0], *ended.Finished) {
				t.Errorf("got %+v, want %+v", got, *ended.Finished)
			}
			wantHistory(t, store, ended)
		}},
		{"finished hours are those asked for, oldest first, of that processor, and pruned with their samples", func(t *testing.T, store state.Store) {
			for _, name := range []string{"a", "a-b", "ab"} {
				for i := range 4 {
					next := sampled(name, hour.Add(time.Duration(i)*time.Hour))
					next.Finished = &state.Summary{Hour: hour.Add(time.Duration(i-1) * time.Hour), Seconds: 1}
					commit(t, store, next, nil)
				}
			}
			for _, step := range []struct {
				before         time.Duration
				from, to, left int
			}{{-1, -9, 9, 4}, {-1, 0, 2, 2}, {-1, 2, 2, 0}, {0, -9, 9, 3}, {1, -9, 9, 2}, {9, -9, 9, 0}} {
				prune(t, store, "a", hour.Add(step.before*time.Hour))
				got := summaries(t, store, "a", step.from, step.to)
				sorted := slices.IsSortedFunc(got, func(a, b state.Summary) int { return a.Hour.Compare(b.Hour) })
				if len(got) != step.left || !sorted {
					t.Errorf("%+v: got %+v", step, got)
				}
			}
			if got := summaries(t, store, "a-b", -9, 9); len(got) != 4 {
				t.Errorf("of another processor: got %+v", got)
			}
		}},
		{"a sample that was pruned can be committed again", func(t *testing.T, store state.Store) {
			commit(t, store, at(0), nil)
			prune(t, store, "orders", hour.Add(time.Hour))
			commit(t, store, at(0), nil)
			wantHistory(t, store, at(0))
		}},
	}
}

// sampled is a State with nothing but the time of the poll and a rate that no other time has.
func sampled(processor string, at time.Time) state.State {
	s := small(processor, 1)
	s.AttemptedAt, s.Memory.DrainPerReplica = at, float64(at.Unix())
	return s
}

func history(t *testing.T, store state.Store, processor string, from, to time.Time) []state.Sample {
	t.Helper()
	got, err := store.History(t.Context(), processor, from, to)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	return got
}

// summaries are the finished hours between two, counted from that of polled.
func summaries(t *testing.T, store state.Store, processor string, from, to int) []state.Summary {
	t.Helper()
	hour := polled().Truncate(time.Hour)
	got, err := store.Summaries(t.Context(), processor, hour.Add(time.Duration(from)*time.Hour), hour.Add(time.Duration(to)*time.Hour))
	if err != nil {
		t.Fatalf("summaries: %v", err)
	}
	return got
}

func prune(t *testing.T, store state.Store, processor string, before time.Time) {
	t.Helper()
	if err := store.Prune(t.Context(), processor, before); err != nil {
		t.Fatalf("prune: %v", err)
	}
}

// wantHistory wants exactly the sample of s, and none where s was never polled.
func wantHistory(t *testing.T, store state.Store, s state.State) {
	t.Helper()
	got := history(t, store, s.Processor, time.Time{}, polled().AddDate(1, 0, 0))
	if s.AttemptedAt.IsZero() {
		wantSamples(t, got)
	} else {
		wantSamples(t, got, s)
	}
}

// wantSamples wants the samples of the States, in their order.
func wantSamples(t *testing.T, got []state.Sample, want ...state.State) {
	t.Helper()
	if len(want) == 0 && got != nil {
		t.Errorf("got %d samples, want nil", len(got))
		return
	}
	if len(got) != len(want) {
		t.Errorf("got %d samples, want %d: %s", len(got), len(want), times(got))
		return
	}
	for i, s := range want {
		if sample := s.Sample(); !reflect.DeepEqual(got[i], sample) {
			t.Errorf("sample %d: got %s, want %s", i, asJSON(got[i]), asJSON(sample))
		}
	}
}

func times(samples []state.Sample) string {
	var text strings.Builder
	for _, sample := range samples {
		fmt.Fprintf(&text, "%s ", sample.Time.Format(time.RFC3339Nano))
	}
	return text.String()
}

func asJSON(sample state.Sample) string {
	text, err := json.Marshal(sample)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
