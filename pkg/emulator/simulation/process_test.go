package simulation_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
)

const (
	interval     = 15 * time.Second // of polling
	tickTimeout  = 12 * time.Second
	heartbeat    = 2 * time.Minute
	destination  = "simulated/decisions"
	ruPerReplica = 150 // request units a second
	mostRU       = 1000
)

// process is one process that polls: all of it is production code but the wires to the outside.
type process struct {
	w      *world
	slot   int
	name   string
	poller *poller.Poller
	offset time.Duration // of its clock

	dead, dying bool
	crashAt     int           // the request of this tick at which it crashes; 0 = none
	answered    bool          // and whether that request still takes effect
	stopAt      time.Duration // after which it is told to stop in this tick; 0 = it is not
	requests    int

	// of the tick in progress
	attempts map[string]int
	heard    map[string]bool // "HOST RANGE" of feeds that were read whole, "HOST" of leases
	feeds    map[feed]int    // the substatus of the last answer of each; 0 where it is whole
	unread   map[string]bool // subjects whose last load of this tick did not end well

	sent   map[string]string // id of what it published last, by subject
	flying map[string]int    // requests on their way, by host
}

// start starts a process with the configuration of now.
func (w *world) start(slot int) *process {
	w.started++
	p := &process{w: w, slot: slot, name: fmt.Sprintf("poller-%d.%d", slot, w.started), sent: map[string]string{}, flying: map[string]int{}}
	p.poller = &poller.Poller{
		Estimator: estimator.New(w.concurrency, p.now), Store: table{w, p}, Publisher: sender{w, p},
		Settings: poller.Settings{Destination: destination, Heartbeat: heartbeat, Timeout: tickTimeout, Retention: 24 * time.Hour, Ticks: every(interval)},
		Now:      p.now, Log: slog.New(slog.DiscardHandler), Signals: p.signals(),
	}
	clients := make(map[string]*cosmos.Account)
	for _, a := range w.accounts {
		if clients[a.host] == nil {
			clients[a.host] = p.client(a, "")
		}
	}
	for _, c := range w.configured() {
		client := clients[c.account.host]
		processor := poller.Processor{
			Processor: estimator.Processor{
				Name: c.name, ProcessorName: c.name, AccountHost: c.account.host,
				Account: client, Container: c.account.in, LeaseAccount: client, LeaseContainer: c.account.leased, StartFrom: c.startFrom,
			},
			Policy: c.policy, Group: c.group, SignalQueue: c.signal,
		}
		if c.every > 0 {
			processor.Schedule = every(c.every)
		}
		p.poller.Processors = append(p.poller.Processors, processor)
	}
	if members := w.members(); len(members) > 0 {
		p.poller.Groups = []poller.Group{{Name: groupName, Policy: w.group, SignalQueue: w.groupSignal}}
	}
	p.poller.Throughput = &throughput.Keeper{Store: table{w, p}, Log: p.poller.Log, Containers: p.containers(), Open: func(setting string) (throughput.Client, error) {
		for _, a := range w.accounts {
			if a.host == setting {
				return p.client(a, "throughput"), nil
			}
		}
		return nil, fmt.Errorf("there is no setting %s", setting)
	}}
	return p
}

// client is a client of an account, for one use of it.
func (p *process) client(a *account, of string) *cosmos.Account {
	client, err := cosmos.NewAccount(cosmos.Options{
		Endpoint: a.endpoint(0), Setting: a.host, Key: accountKey, Concurrency: p.w.concurrency, Transport: wire{p.w, p, a, of},
	})
	if err != nil {
		panic(err)
	}
	return client
}

func (p *process) now() time.Time { return time.Now().Add(p.offset) }

// every is a schedule.
type every time.Duration

func (e every) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(e)).Add(time.Duration(e))
}

// prepare chooses what is to become of a process in this tick.
func (p *process) prepare() {
	w := p.w
	p.attempts, p.heard, p.unread = map[string]int{}, map[string]bool{}, map[string]bool{}
	p.feeds = map[feed]int{}
	p.requests, p.crashAt, p.stopAt = 0, 0, 0
	if w.happens("crash", "poller", p.slot) {
		p.crashAt = 1 + w.dice.upTo(25, "crash at", "", p.slot, w.tick)
		p.answered = w.dice.roll("crash answered", "", p.slot, w.tick) < 0.5
	}
	if w.happens("stop", "poller", p.slot) {
		p.stopAt = time.Duration(1 + w.dice.upTo(int(200*time.Millisecond), "stop at", "", p.slot, w.tick))
	}
}

// tick polls once.
func (p *process) tick() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	time.Sleep(time.Duration(p.w.dice.upTo(int(50*time.Millisecond), "phase", "", p.slot, p.w.tick)))
	if p.stopAt > 0 {
		defer time.AfterFunc(p.stopAt, stop).Stop()
	}
	_, _ = p.poller.Tick(ctx, poller.Mode{}) // what it could not do is in the states
	if p.stopAt > 0 {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.dead = true
	}
}

// begin is the way of a request to whoever answers it.
func (p *process) begin(ctx context.Context, op string) (attempt int, err error) {
	p.w.mu.Lock()
	attempt = p.attempts[op]
	p.attempts[op]++
	dead := p.dead
	p.w.mu.Unlock()
	if dead {
		return attempt, errGone
	}
	timer := time.NewTimer(p.w.delay(p, op, attempt))
	defer timer.Stop()
	select {
	case <-timer.C:
		return attempt, nil
	case <-ctx.Done():
		return attempt, ctx.Err()
	}
}

// inFlight counts requests to an account that are on their way.
func (p *process) inFlight(host string, n int) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.flying[host] += n
	p.w.atOnce = max(p.w.atOnce, p.flying[host])
}

// arrive is called where a request would take effect, and depart behind that: a process may crash before
// either. The world is locked.
func (p *process) arrive(op string) error {
	if p.dead {
		return errGone
	}
	if p.requests++; p.requests == p.crashAt {
		p.w.tell("%s crashes at %s", p.name, op)
		p.dead, p.dying = !p.answered, p.answered
	}
	if p.dead {
		return errGone
	}
	return nil
}

func (p *process) depart() error {
	if p.dying {
		p.dead = true
	}
	if p.dead {
		return errGone
	}
	return nil
}

// heardFrom notes what the service has really said in this tick.
func (p *process) heardFrom(a *account, r *http.Request, substatus int) {
	switch {
	case !strings.HasSuffix(r.URL.Path, "/docs"):
	case r.Method == http.MethodPost:
		p.heard[a.name] = true
	default:
		f := a.feedOf(r)
		p.heard[a.name+" "+f.id], p.feeds[f] = true, substatus
	}
}

// containers are what package app makes of a configuration: each account's with the processors that name it.
func (p *process) containers() (all []*throughput.Container) {
	for _, a := range p.w.accounts {
		c := &throughput.Container{
			Account: a.endpoint(0), Host: a.host, Setting: a.host, Container: a.in,
			Policy: scaling.ThroughputPolicy{Max: mostRU, ScaleDownAfter: time.Minute}, Client: p.client(a, "throughput"),
		}
		for _, configured := range p.w.configured() {
			if configured.account != a || configured.mode == "" {
				continue
			}
			c.Apply = c.Apply || configured.mode == "apply" && !configured.policy.Paused
			c.Processors = append(c.Processors, throughput.Processor{Name: configured.name, RUPerReplica: ruPerReplica})
		}
		if len(c.Processors) > 0 {
			all = append(all, c)
		}
	}
	return all
}
