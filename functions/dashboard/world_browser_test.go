//go:build browser

package dashboard_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// night is when the browser looks.
var night = time.Date(2026, 3, 1, 2, 47, 30, 0, time.UTC)

// hostile is HTML in a lease document or an error, which the page must show as text.
const hostile = `<img src=x onerror="document.title='broken in'"><script>document.title='broken in'</script>`

// actor is a processor of the world: what its partitions are like at the end of the night.
type actor struct {
	name, group string
	partitions  int
	hours       int // of history, polled each minute; 0 = one poll
	rate        float64
	paused      bool
	// twist changes what a poll measured at a time before the end of the night.
	twist func(lag *changefeed.ProcessorLag, before time.Duration)
}

func eachPartition(change func(i int, p *changefeed.Partition)) func(*changefeed.ProcessorLag, time.Duration) {
	return func(lag *changefeed.ProcessorLag, _ time.Duration) {
		for i := range lag.Partitions {
			change(i, &lag.Partitions[i])
		}
	}
}

func status(s changefeed.Status) func(*changefeed.ProcessorLag, time.Duration) {
	return eachPartition(func(i int, p *changefeed.Partition) {
		if i == 1 {
			p.Status = s
		}
	})
}

// cast has a processor of every status, and as many more as are wanted.
func cast(all int) []actor {
	actors := []actor{
		{name: "orders", group: "shop-workers", partitions: 8, hours: 26, rate: 45, twist: func(lag *changefeed.ProcessorLag, before time.Duration) {
			if before > 100*time.Minute && before < 118*time.Minute {
				lag.Partitions, lag.Error = nil, "account shop: it has not answered 5 calls in a row since 01:02"
			}
		}},
		{name: "payments", group: "shop-workers", partitions: 4, hours: 8, rate: 12, twist: func(lag *changefeed.ProcessorLag, before time.Duration) {
			if before < 33*time.Minute {
				p := &lag.Partitions[3]
				p.Lag, p.Age, p.Owner, p.Status = new(2412-60*int64(before/time.Minute)), new(2005-int64(before/time.Second)), "payments-7c9f-2", changefeed.StatusStalled
				p.Stall = &changefeed.Stall{Kind: changefeed.StallHung, Since: night.Add(-33 * time.Minute), Owners: []string{"payments-7c9f-2"}}
				p.Position, p.CheckpointLSN = "4711", new(int64(4711))
			}
		}},
		{name: "stock", group: "shop-workers", partitions: 4, hours: 8, rate: 0.01},
	}
	if all > 3 {
		actors = append(actors,
			actor{name: "audit-archive", partitions: 6, rate: 3, twist: eachPartition(func(i int, p *changefeed.Partition) {
				if i < 2 {
					p.Error, p.Lag, p.Age, p.Status = "the account throttles: request units are used up (429)"+[]string{"", " " + hostile}[i], nil, nil, changefeed.StatusUnknown
				}
				p.Owner = hostile
			})},
			actor{name: "invoices", partitions: 4, rate: 9, twist: status(changefeed.StatusExpiring)},
			actor{name: "loyalty", partitions: 1, rate: 1, twist: func(lag *changefeed.ProcessorLag, _ time.Duration) { lag.Partitions, lag.Bootstrap = nil, true }},
			actor{name: "carts", partitions: 5, rate: 7, twist: status(changefeed.StatusSplitting)},
			actor{name: "mail-sender", partitions: 3, rate: 4, twist: status(changefeed.StatusUnclaimed)},
			actor{name: "search-index", partitions: 12, rate: 2, twist: status(changefeed.StatusUncheckpointed)},
			actor{name: "returns", partitions: 2, rate: 0.01, paused: true},
			actor{name: "telemetry", partitions: 120, rate: 900},
		)
	}
	teams := []string{"billing", "catalog", "delivery", "fraud", "pricing", "profile"}
	for i := len(actors); i < all; i++ {
		a := actor{name: fmt.Sprintf("%s-projection-%d", teams[i%len(teams)], i), partitions: 1 + i%7, rate: 0.01}
		if i%9 == 0 {
			a.rate = float64(3 * (i % 50))
		}
		if i%97 == 0 {
			a.twist = status(changefeed.StatusUnclaimed)
		}
		actors = append(actors, a)
	}
	return actors
}

// serveNight serves the dashboard, and the functions beside it, over a night of so many processors.
func serveNight(t *testing.T, all int) string {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	h := &processors.Handler{Overview: &overview.Overview{Store: store, Now: func() time.Time { return night }, Log: slog.New(slog.DiscardHandler)}}
	next := func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }
	actors := cast(all)
	var plays errgroup.Group
	plays.SetLimit(500)
	for _, a := range actors {
		h.Processors = append(h.Processors, overview.Subject{Name: a.name, Group: a.group, Next: next})
		plays.Go(func() error { return a.play(t, store) })
	}
	testworld.Must(t, plays.Wait())
	h.Groups = []overview.Subject{{Name: "shop-workers", Next: next}}
	playGroup(t, store, actors[:3])
	h.Policies = func(name string) []simulate.Scaler {
		if name == "shop-workers" {
			return nil
		}
		return []simulate.Scaler{simulate.Feedscale("own", policy(), time.Minute), simulate.Feedscale("default", config.DefaultPolicy(), time.Minute), simulate.KEDA()}
	}
	mux := http.NewServeMux()
	h.Register(mux)
	dashboard.Register(mux, false)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func policy() scaling.Policy {
	p := config.DefaultPolicy()
	p.MaxReplicas = new(12)
	return p
}

// play has a processor polled each minute until the end of the night.
func (a actor) play(t *testing.T, store state.Store) error {
	polls := a.hours*60 + 1
	pending, done := make([]int64, a.partitions), make([]int64, a.partitions)
	s := state.State{Processor: a.name, Epoch: night.Add(-72 * time.Hour).Unix(), Group: a.group, Paused: a.paused}
	if a.name == "payments" {
		s.Containers = []state.Container{{
			Account: "shop.documents.azure.com", Database: "shop", Container: "ledger", Apply: true, Max: 4000, Provisioned: 1100,
			Decision: &scaling.ThroughputDecision{RUPerSecond: 1600, AtLimit: true, Reasons: []scaling.ThroughputReason{{Step: "demand", RUPerSecond: 1600, Why: "payments needs 5 x 320 RU/s " + hostile}}},
		}}
	}
	var version state.Version
	replicas := 1
	for i := range polls {
		before := time.Duration(polls-1-i) * time.Minute
		at := night.Add(-before - 8*time.Second)
		hour := float64(at.Unix()%86400) / 3600
		rate := a.rate * (1 + 0.6*math.Sin(hour*math.Pi/6))
		if before > 250*time.Minute && before < 290*time.Minute || before > 12*time.Minute && before < 45*time.Minute {
			rate *= 3
		}
		lag := changefeed.ProcessorLag{Time: at, Charge: 2.8 + float64(a.partitions), Requests: 1 + a.partitions}
		for p := range a.partitions {
			came := int64(rate * 60 * (0.6 + 0.8*float64((p*7+i)%5)/4) / float64(a.partitions))
			pending[p] += came
			worked := min(pending[p], int64(replicas*25*60/a.partitions))
			pending[p], done[p] = pending[p]-worked, done[p]+worked
			young := int64(rate * 4 / float64(a.partitions)) // what came since the last checkpoint
			lag.Partitions = append(lag.Partitions, partitionOf(a.name, p, replicas, pending[p]+young, done[p], rate, at))
		}
		if a.twist != nil {
			a.twist(&lag, before)
		}
		lag, s.Health = health.Assess(health.Input{Now: at, Lag: lag, Policy: policy().Health, Asked: s.Memory.Asked, Memory: s.Health})
		last := s
		outcome := scaling.Decide(scaling.Input{Now: at, Lag: lag, Policy: policy(), Memory: s.Memory})
		s.AttemptedAt, s.Lag, s.Decision, s.Memory = at, lag, outcome.Decision, outcome.Memory
		if lag.Known() {
			s.PolledAt = at
		}
		if d := outcome.Decision; d != nil {
			if d.Previous == nil || *d.Previous != d.Replicas {
				s.Sequence++
			}
			replicas = d.Replicas
		}
		s.Record(&last, state.Observation{LeaseExpiration: time.Minute, Due: at})
		if err := store.Commit(t.Context(), version, s, nil); err != nil {
			return err
		}
		record, err := storetest.Load(t.Context(), store, a.name)
		if err != nil {
			return err
		}
		version = record.Version
	}
	return nil
}

func partitionOf(name string, index, replicas int, pending, done int64, rate float64, at time.Time) changefeed.Partition {
	p := changefeed.Partition{
		Lease: fmt.Sprint(index), Lag: &pending, Status: changefeed.StatusOK, LeaseTime: at,
		SessionLSN: new(done + pending), CheckpointLSN: &done, Position: fmt.Sprintf("%q", fmt.Sprint(done)),
	}
	if replicas > 0 {
		p.Owner = fmt.Sprintf("%s-7c9f-%d", name, index%replicas)
	}
	if pending > 0 {
		p.Status, p.Age = changefeed.StatusLagging, new(1+int64(float64(pending)/max(rate, 0.1)*4))
	}
	return p
}

// playGroup has the group follow what its members asked for.
func playGroup(t *testing.T, store state.Store, members []actor) {
	t.Helper()
	histories := make([][]state.Sample, len(members))
	for i, m := range members {
		var err error
		histories[i], err = store.History(t.Context(), m.name, night.Add(-8*time.Hour), night)
		testworld.Must(t, err)
	}
	g := state.State{Processor: "shop-workers", Epoch: 1}
	var version state.Version
	for i := range min(len(histories[0]), len(histories[1]), len(histories[2])) {
		last := g
		g.AttemptedAt, g.PolledAt, g.Members = histories[0][i].Time, histories[0][i].Time, nil
		most, who := 0, ""
		for k, m := range members {
			sample := histories[k][i]
			g.Members = append(g.Members, state.Member{Processor: m.name, Replicas: sample.Replicas, Totals: changefeed.Totals{
				Lag: sample.Lag, Age: sample.Age, Partitions: sample.PartitionCount, PartitionsWithLag: sample.PartitionsWithLag, Complete: sample.Complete, Status: sample.Status,
			}})
			if sample.Replicas != nil && *sample.Replicas > most {
				most, who = *sample.Replicas, m.name
			}
		}
		d := scaling.Decision{Time: g.AttemptedAt, Replicas: most, Direction: scaling.None, Active: most > 0, MetricValue: int64(most), Reasons: []scaling.Reason{{Step: "group", Replicas: most, Why: who + " asks for the most"}}}
		if g.Decision != nil {
			d.Previous = &g.Decision.Replicas
		}
		g.Decision = &d
		g.Record(&last, state.Observation{})
		testworld.Must(t, store.Commit(t.Context(), version, g, nil))
		record, err := storetest.Load(t.Context(), store, g.Processor)
		testworld.Must(t, err)
		version = record.Version
	}
}
