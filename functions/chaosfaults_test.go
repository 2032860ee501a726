package main_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// ownAgent marks the test's own requests. No fault affects them except the outage of a region.
const ownAgent = "chaos"

// dice is a source of random choices that several goroutines can use.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{random: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) chance(share float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < share
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func pick[T any](d *dice, of []T) T { return of[d.below(len(of))] }

// fault is a failure that lasts for some ticks.
type fault struct {
	name string
	left int // ticks
	end  func()
}

// script is a scripted answer with its name in the log.
type script[T any] struct {
	name   string
	answer T
}

// cosmosAnswers are the answers of a failing account to any request.
var cosmosAnswers = []script[cosmosfake.Answer]{
	{"429", cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"20"}}}},
	{"449", cosmosfake.Answer{Status: 449}},
	{"503", cosmosfake.Answer{Status: 503}},
	{"500", cosmosfake.Answer{Status: 500}},
	{"408", cosmosfake.Answer{Status: 408}},
	{"410 range gone", cosmosfake.RangeGone()},
	{"410 splitting", cosmosfake.RangeSplitting()},
	{"410 migrating", cosmosfake.RangeMigrating()},
	{"410 name stale", cosmosfake.NameStale()},
	{"404", cosmosfake.Answer{Status: 404}},
	{"404 session not available", cosmosfake.Answer{Status: 404, Substatus: 1002}},
	{"401 token expired", cosmosfake.Answer{Status: 401}},
	{"403 firewall", cosmosfake.FirewallForbids("10.0.0.1")},
	{"a cut connection", cosmosfake.Answer{Break: true}},
	{"a cut body", cosmosfake.Answer{CutShort: true}},
	{"a page without results", cosmosfake.Answer{EmptyPage: true}},
	{"a delay", cosmosfake.Answer{Delay: 200 * time.Millisecond}},
	{"no answer", cosmosfake.Answer{Delay: time.Hour}},
	{"200 with an empty body", cosmosfake.Answer{Status: 200}},
	{"200 with half a document", cosmosfake.Answer{Status: 200, Body: `{"_rid":"","Documents":[{"id":"orders`}},
	{"200 with {}", cosmosfake.Answer{Status: 200, Body: `{}`}},
	{"200 with null", cosmosfake.Answer{Status: 200, Body: `null`}},
	{"200 with []", cosmosfake.Answer{Status: 200, Body: `[]`}},
	{"200 with a page of a proxy", cosmosfake.Answer{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: `<html><title>Sign in</title></html>`}},
}

// cosmosKinds are the requests that a tick makes.
var cosmosKinds = []cosmosfake.Kind{cosmosfake.ReadAccount, cosmosfake.ReadDatabase, cosmosfake.ReadContainer, cosmosfake.ReadRanges, cosmosfake.QueryDocuments, cosmosfake.ReadChangeFeed}

// cosmosFault makes the account fail requests of one kind, to one or all containers, always or
// sometimes.
func (w *chaos) cosmosFault(d *dice) fault {
	kind, with, share := pick(d, cosmosKinds), pick(d, cosmosAnswers), pick(d, []float64{0.2, 0.6, 1})
	if kind == cosmosfake.QueryDocuments && with.name == "404" {
		with = cosmosAnswers[0] // the correct answer about a lease container that does not exist
	}
	container := ""
	if kind == cosmosfake.ReadChangeFeed && d.chance(0.5) {
		container = pick(d, w.processors).name
	}
	if kind == cosmosfake.ReadChangeFeed && with.answer.EmptyPage {
		// four such pages in a row count as one change (docs/lag.md), so the replicas go down
		container = w.processors[0].name
	}
	own := newDice(uint64(d.below(1 << 30)))
	end := w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != kind || r.Header.Get("User-Agent") == ownAgent || container != "" && r.Container != container || !own.chance(share) {
			return nil
		}
		return &with.answer
	})
	return fault{name: fmt.Sprintf("%.0f%% of %s %s: %s", share*100, kind, container, with.name), end: end}
}

// regionFault makes a region fail in one of the possible ways.
func (w *chaos) regionFault(d *dice) fault {
	region := d.below(2)
	state := pick(d, []script[cosmosfake.RegionState]{{"503", cosmosfake.Unavailable}, {"refuses", cosmosfake.Refusing}, {"hangs", cosmosfake.Hanging}})
	w.try(w.Account.SetRegion(region, state.answer))
	return fault{name: fmt.Sprintf("region %d: %s", region, state.name), end: func() { w.try(w.Account.SetRegion(region, cosmosfake.Online)) }}
}

// tableAnswers are the failures of the state table. Each replaces the answer of the real table, or
// calls it.
var tableAnswers = []script[func(http.ResponseWriter, *http.Request, http.Handler)]{
	{"a cut connection", func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }},
	{"no answer", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
		panic(http.ErrAbortHandler)
	}},
	{"503", refuse(http.StatusServiceUnavailable, "ServerBusy")},
	{"500", refuse(http.StatusInternalServerError, "InternalError")},
	{"403 token expired", refuse(http.StatusForbidden, "AuthenticationFailed")},
	{"429", refuse(http.StatusTooManyRequests, "TooManyRequests")},
	{"a delay", func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		select {
		case <-r.Context().Done():
		case <-time.After(150 * time.Millisecond):
			behind.ServeHTTP(w, r)
		}
	}},
	{"a lost answer", loseAnswer},
	{"an empty body", func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, r)
		copyHeader(w, answer)
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(answer.Code)
	}},
	{"a cut body", func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, r)
		copyHeader(w, answer)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"200 with half a body that ends well", func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, r)
		copyHeader(w, answer)
		half := answer.Body.Bytes()[:answer.Body.Len()/2]
		w.Header().Set("Content-Length", fmt.Sprint(len(half)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(half)
	}},
}

func copyHeader(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
}

func refuse(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json;odata=minimalmetadata")
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"odata.error":{"code":%q,"message":{"lang":"en-US","value":"scripted"}}}`, code)
	}
}

// loseAnswer lets the request take effect and drops the answer.
func loseAnswer(_ http.ResponseWriter, r *http.Request, behind http.Handler) {
	behind.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// tableFault makes the table fail requests of one method, or to the rows of one processor.
func (w *chaos) tableFault(d *dice) fault {
	with, share, text, method := pick(d, tableAnswers), pick(d, []float64{0.2, 0.6, 1}), "", pick(d, []string{"GET", "POST", ""})
	if d.chance(0.3) {
		text, method, share = pick(d, w.processors).name, "", 1
	}
	own := newDice(uint64(d.below(1 << 30)))
	w.table.Store(&tableFault{with.answer, func(r *http.Request) bool {
		link, _ := url.QueryUnescape(r.URL.String())
		return (method == "" || method == r.Method) && strings.Contains(link, text) && own.chance(share)
	}})
	return fault{name: fmt.Sprintf("%.0f%% of table %s %s: %s", share*100, method, text, with.name), end: func() { w.table.Store(nil) }}
}

type tableFault struct {
	answer  func(http.ResponseWriter, *http.Request, http.Handler)
	concern func(*http.Request) bool
}

// busAnswers are the failures of the namespace.
var busAnswers = []script[servicebusfake.Answer]{
	{"gone", servicebusfake.Answer{Drop: true}},
	{"loses answers", servicebusfake.Answer{LoseReply: true}},
	{"cuts behind", servicebusfake.Answer{LoseReply: true, Drop: true}},
	{"busy", servicebusfake.Answer{Condition: "com.microsoft:server-busy", Description: "scripted"}},
	{"full", servicebusfake.Answer{Condition: "amqp:resource-limit-exceeded", Description: "scripted"}},
	{"token expired", servicebusfake.Answer{Condition: "amqp:unauthorized-access", Status: 401, Description: "scripted"}},
	{"slow", servicebusfake.Answer{Delay: 100 * time.Millisecond}},
	{"silent", servicebusfake.Answer{Delay: 3 * time.Second}},
}

// busFault makes operations of the namespace fail. If the broker is down, all fail, for a long
// time.
func (w *chaos) busFault(d *dice) fault {
	with, share := pick(d, busAnswers), pick(d, []float64{0.2, 0.6, 1})
	op := pick(d, []servicebusfake.Op{servicebusfake.OpOpen, servicebusfake.OpPutToken, servicebusfake.OpAttach, servicebusfake.OpSend, servicebusfake.OpManage})
	answer := with.answer
	answer.Keep = true
	own := newDice(uint64(d.below(1 << 30)))
	gone := with.name == "gone"
	w.bus.Store(new(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if !gone && (r.Op != op || !own.chance(share)) {
			return nil
		}
		return &answer
	}))
	f := fault{name: fmt.Sprintf("%.0f%% of namespace %s: %s", share*100, op, with.name), end: func() { w.bus.Store(nil) }}
	if gone {
		f.name, f.left = "the namespace is gone", 5+d.below(30)
	}
	return f
}

// killing is the step at which a process is killed.
type killing struct {
	of     process
	signal syscall.Signal
	step   string
	nth    int  // of those requests, from 0
	done   bool // the request takes effect, and its answer is lost
}

// killSteps are the requests of a tick, by their destination.
func killSteps() (steps []string) {
	for _, kind := range cosmosKinds {
		steps = append(steps, "account: "+string(kind))
	}
	for _, op := range []servicebusfake.Op{servicebusfake.OpOpen, servicebusfake.OpPutToken, servicebusfake.OpAttach, servicebusfake.OpSend, servicebusfake.OpManage} {
		steps = append(steps, "namespace: "+string(op))
	}
	return append(steps, "table: GET", "table: POST", "table: DELETE", "any moment")
}

// reached is called at each step. It reports whether a process was killed there, and whether its
// request still takes effect.
func (w *chaos) reached(step string) (killed, done bool) {
	w.killMu.Lock()
	defer w.killMu.Unlock()
	k := w.kill
	if k == nil || k.step != step {
		return false, false
	}
	if k.nth--; k.nth >= 0 {
		return false, false
	}
	w.kill = nil
	w.fire(k)
	return true, k.done
}

// fire kills the process. The caller holds killMu.
func (w *chaos) fire(k *killing) {
	k.of.signal(k.signal)
	w.record.kill(fmt.Sprintf("%s, %s", k.step, k.signal))
}

// intercept passes every request of the processes through faults and kills.
func (w *chaos) intercept() {
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Header.Get("User-Agent") == ownAgent {
			return nil
		}
		switch killed, done := w.reached("account: " + string(r.Kind)); {
		case killed && done:
			return &cosmosfake.Answer{CutShort: true}
		case killed:
			return &cosmosfake.Answer{Break: true}
		}
		return nil
	})
	w.front.intercept(func(response http.ResponseWriter, r *http.Request, behind http.Handler) {
		switch killed, done := w.reached("table: " + r.Method); {
		case killed && done:
			loseAnswer(response, r, behind)
		case killed:
			panic(http.ErrAbortHandler)
		}
		if f := w.table.Load(); f != nil && f.concern(r) {
			f.answer(response, r, behind)
			return
		}
		behind.ServeHTTP(response, r)
	})
	w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		w.judge.sent(r)
		if killed, done := w.reached("namespace: " + string(r.Op)); killed {
			return &servicebusfake.Answer{Drop: true, LoseReply: done, Keep: true}
		}
		if f := w.bus.Load(); f != nil {
			return (*f)(r)
		}
		return nil
	})
}
