package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state"
)

// views is a container with 500 RU/s. One replica of orders needs 1,500.
var views = cosmos.Container{Database: testworld.Database, ID: "views"}

// followed is a world whose container views follows orders, with a front before its table.
type followed struct {
	*world
	front *front
}

func newFollowed(t *testing.T) followed {
	t.Helper()
	w := followed{newWorld(t), newFront(t)}
	w.Create(cosmosfake.ContainerSpec{ID: views.ID, PartitionKey: []string{"/id"}, Throughput: 500})
	w.Write(testworld.Orders, 5)
	return w
}

// fields of the processor orders, by what happens to its throughput.
const (
	named     = "containers: [{container: views, ruPerReplica: 1500}]"
	applied   = ", throughput: {mode: apply, " + named + "}"
	suggested = ", throughput: {mode: recommend, " + named + "}"
)

// start starts a host whose processor orders has additional fields, or without the processor.
func (w followed) start(fields string) *functionshost.Host {
	w.t.Helper()
	settings := w.settings()
	settings["AzureWebJobsStorage"] = w.front.connection
	if fields == removed {
		settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "name: orders", "name: others", 1)
	} else {
		settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}", fields+"}]}", 1)
	}
	return w.host(settings)
}

// removed means a configuration without the processor.
const removed = "removed"

func (w followed) wantProvisioned(when string, want int) {
	w.t.Helper()
	read, err := w.Client().ReadThroughput(w.t.Context(), views)
	testworld.Must(w.t, err)
	if read.RUPerSecond != want {
		w.t.Errorf("%s: %d RU/s, want %d", when, read.RUPerSecond, want)
	}
}

// remembered returns the containers whose original throughput is stored.
func (w followed) remembered() (all []state.Container) {
	w.t.Helper()
	documents, err := w.store().Documents(w.t.Context(), state.ContainersPrefix)
	testworld.Must(w.t, err)
	for _, d := range documents {
		var c state.Container
		if testworld.Must(w.t, d.Decode(&c)); c.Found > 0 {
			all = append(all, c)
		}
	}
	return all
}

// step is a point in a tick at which a process ends: the nth request of a kind.
type step struct {
	rule   string
	store  int // number of the write to the store; 0 = a change of the container
	change int // number of the change of the container
	// the request takes effect, its answer is lost, and the process ends when it asks again
	unheard bool
}

// killAt kills the handler of a host at a step of a tick, as often as the step needs.
func (w followed) killAt(h *functionshost.Host, s step, ticks int) {
	w.t.Helper()
	reached, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	writes, changes := 0, 0
	// hold reports whether this is the step, and if so, waits.
	hold := func(counter *int, at int) bool {
		mu.Lock()
		*counter++
		here := *counter == at
		mu.Unlock()
		if here {
			close(reached)
			<-release
		}
		return here
	}
	w.front.control(func(r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(r.URL.String()+string(body), state.ContainersPrefix) {
			hold(&writes, s.store)
		}
	})
	remove := w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReplaceOffer {
			return nil
		}
		last := s.change
		if s.unheard {
			last++
		}
		if hold(&changes, last) {
			return &cosmosfake.Answer{Break: true}
		}
		if s.unheard {
			return &cosmosfake.Answer{CutShort: true}
		}
		return nil
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range ticks {
			if _, err := h.Timer(context.WithoutCancel(w.t.Context()), "poll", functionshost.Tick{}); err != nil {
				return
			}
		}
	}()
	select {
	case <-reached:
		h.Kill()
	case <-ended:
		w.t.Errorf("the step was not reached; the host logged %v", h.Logs())
	}
	<-ended
	close(release)
	h.Close()
	remove()
	w.front.control(func(*http.Request) {})
}

// TestAKillBetweenTwoStepsLosesNothingOfWhatWasFound kills the process that raises a container, or
// restores its throughput. It then starts another, with each configuration that ends the following.
func TestAKillBetweenTwoStepsLosesNothingOfWhatWasFound(t *testing.T) {
	t.Parallel()
	ends := map[string]string{
		"its processor is removed": removed, "it is paused": applied + ", paused: true",
		"apply becomes recommend": suggested, "the mode is off": strings.Replace(applied, "apply", "off", 1), "the block is gone": "",
	}
	for _, s := range []step{
		{rule: "before what was found is remembered", store: 1},
		{rule: "behind that, before the change", change: 1},
		{rule: "behind the change, of which it does not hear", change: 1, unheard: true},
		{rule: "behind the change, before it is seen to be made", store: 2},
	} {
		for rule, end := range ends {
			t.Run(s.rule+", and "+rule, func(t *testing.T) {
				t.Parallel()
				w := newFollowed(t)
				w.killAt(w.start(applied), s, 2)
				if s.unheard {
					w.wantProvisioned("a change that nobody heard of", 1500)
				}
				w.ends(end)
			})
		}
	}
	for _, s := range []step{
		{rule: "before giving back is remembered", store: 1},
		{rule: "before it is given back", change: 1},
		{rule: "behind that, of which it does not hear", change: 1, unheard: true},
		{rule: "before it is forgotten", store: 2},
	} {
		for rule, end := range ends {
			t.Run(s.rule+", and "+rule, func(t *testing.T) {
				t.Parallel()
				w := newFollowed(t)
				h := w.start(applied)
				tick(t, h)
				tick(t, h)
				h.Close()
				w.wantProvisioned("while it is needed", 1500)
				w.killAt(w.start(end), s, 1)
				if s.unheard {
					w.wantProvisioned("a change that nobody heard of", 500)
				}
				w.ends(end)
			})
		}
	}
}

// ends starts another process with a configuration, and checks that the original throughput is
// restored.
func (w followed) ends(fields string) {
	w.t.Helper()
	h := w.start(fields)
	tick(w.t, h)
	w.wantProvisioned("at the end", 500)
	if left := w.remembered(); len(left) != 0 {
		w.t.Errorf("%+v is remembered", left)
	}
	if n := logged(h, "left alone"); n > 0 {
		w.t.Errorf("it took its own change for somebody else's: %v", h.Logs())
	}
}

// TestAProcessThatWasKilledGoesOn kills at each step and starts again with the same configuration.
func TestAProcessThatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	for _, s := range []step{{rule: "before it is remembered", store: 1}, {rule: "before the change", change: 1}, {rule: "behind it", change: 1, unheard: true}} {
		t.Run(s.rule, func(t *testing.T) {
			t.Parallel()
			w := newFollowed(t)
			w.killAt(w.start(applied), s, 1)
			h := w.start(applied)
			tick(t, h)
			w.wantProvisioned("behind the end", 1500)
			if n := logged(h, "left alone"); n > 0 {
				t.Errorf("it took its own change for somebody else's: %v", h.Logs())
			}
		})
	}
}

// TestSomebodyElsesThroughputIsSaidAndLeftAloneAcrossProcesses changes the throughput while no
// process runs.
func TestSomebodyElsesThroughputIsSaidAndLeftAloneAcrossProcesses(t *testing.T) {
	t.Parallel()
	w := newFollowed(t)
	h := w.start(applied)
	tick(t, h)
	tick(t, h)
	h.Close()
	read, err := w.Client().ReadThroughput(t.Context(), views)
	testworld.Must(t, err)
	_, err = w.Client().ReplaceThroughput(t.Context(), views, read, 900)
	testworld.Must(t, err)
	before := w.Account.Requests().Requests[cosmosfake.ReplaceOffer]
	for _, fields := range []string{applied, suggested, removed} {
		h := w.start(fields)
		tick(t, h)
		if n := logged(h, "somebody else provisioned 900 RU/s in place of 1500"); n != 1 && fields != removed {
			t.Errorf("%q: said %d times: %v", fields, n, h.Logs())
		}
		h.Close()
		w.wantProvisioned(fields, 900)
	}
	if n := w.Account.Requests().Requests[cosmosfake.ReplaceOffer]; n != before {
		t.Errorf("%d writes", n-before)
	}
}
