package main_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// The size of a world.
const (
	busy        = "busy"    // always has the same backlog
	group       = "workers" // of the processors payments and audit
	signalQueue = "orders-replicas"
	perReplica  = 10 // changes per replica
	most        = 6  // partitions of a container; with so many, none is split
)

// watched is a processor with what the test knows of its container.
type watched struct {
	name   string // also of the container
	member bool   // of the group
	of     leasefake.Processor
	leases map[string]string // ids by token
	lag    int               // exact if chaos.exact is set, or if nothing happened since settle
}

// chaos is a world with faults: accounts, a table, a namespace, and processes that use them.
type chaos struct {
	*testworld.World
	t          *testing.T
	dice       *dice
	seed       uint64
	folder     string // for the files of the processes
	settings   map[string]string
	front      *front // in front of the table
	processors []*watched
	processes  []process
	spared     process // gets no signal; nil = every process may
	exact      bool    // processors read to the end or not at all, so their lags are known
	judge      *judge
	record     *record
	faults     []fault
	secrets    []string

	table atomic.Pointer[tableFault]
	bus   atomic.Pointer[func(*servicebusfake.Request) *servicebusfake.Answer]

	killMu sync.Mutex
	kill   *killing

	storyMu sync.Mutex
	story   *os.File
	broken  bool
	began   time.Time
}

// record adds up the counts of all worlds of a run.
type record struct {
	mu                            sync.Mutex
	ticks, faults, events, rounds int
	settled                       int
	longest                       int // rounds
	kills                         map[string]int
}

func (r *record) kill(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kills[what]++
}

func (r *record) enough(ticks int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ticks >= ticks
}

func (r *record) add(change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// newChaos starts a world with processes of one kind. The seed makes all choices.
func newChaos(t *testing.T, seed uint64, kind string, r *record) *chaos {
	t.Helper()
	story, err := os.CreateTemp("", fmt.Sprintf("feedscale-chaos-%d-*.txt", seed))
	testworld.Must(t, err)
	w := &chaos{t: t, dice: newDice(seed), seed: seed, record: r, story: story, began: time.Now(), folder: t.TempDir(), front: newFront(t)}
	t.Cleanup(func() {
		testworld.Must(t, story.Close())
		if !w.broken {
			testworld.Must(t, os.Remove(story.Name()))
		}
	})
	w.tell("seed %d, %s", seed, kind)
	w.World = testworld.New(t, testworld.Options{
		Account: cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}},
		// A message whose receiver lost its connection returns within the test.
		Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue, DuplicateDetectionWindow: 10 * time.Minute, LockDuration: time.Second, MaxDeliveryCount: 1 << 20}, {Name: signalQueue}},
	})
	w.judge = newJudge(w.breaks)
	for _, p := range []struct {
		name       string
		partitions int
		member     bool
	}{{"orders", 1, false}, {"payments", 2, true}, {"audit", 3, true}, {busy, 2, false}} {
		w.Container(p.name, p.partitions)
		w.processors = append(w.processors, &watched{name: p.name, member: p.member, of: w.LeasesOf("", testworld.OrdersHost, p.name), leases: map[string]string{}})
	}
	for _, p := range w.processors {
		ranges, err := w.ranges(p)
		testworld.Must(t, err)
		for _, span := range ranges {
			w.lease(p, span, 0)
		}
	}
	w.Write(busy, 20*perReplica)
	w.secrets = []string{cosmosfake.WellKnownKey, servicebusfake.DefaultKey, field(w.front.connection, "AccountKey"), "sig=", "SharedAccessSignature s"}
	table := newTable()
	w.settings = map[string]string{
		"COSMOS": w.Account.ConnectionString(), "SERVICEBUS": w.Namespace.ConnectionString(), "AzureWebJobsStorage": w.front.connection,
		"FEEDSCALE_STATE": "table:AzureWebJobsStorage/" + table, "FEEDSCALE_EVENTS": "servicebus:SERVICEBUS/" + testworld.Queue,
		"FEEDSCALE_TIMER_SCHEDULE": "* * * * * *", "FEEDSCALE_TICK_TIMEOUT": "2s",
		// The next heartbeat would otherwise hide a lost event.
		"FEEDSCALE_EVENT_HEARTBEAT": "0",
		"FEEDSCALE_PROCESSORS": fmt.Sprintf(`{defaults: {connection: COSMOS, databaseId: shop, accountHost: %s, changeFeedLagThreshold: %d, sizing: threshold, cooldownPeriod: 0, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}},
groups: [{name: %s, minReplicaCount: 0, maxReplicaCount: 20}],
processors: [{name: orders, containerId: orders, signalQueue: %[4]s}, {name: payments, containerId: payments, group: %[3]s}, {name: audit, containerId: audit, group: %[3]s}, {name: %[5]s, containerId: %[5]s}]}`,
			testworld.OrdersHost, perReplica, group, signalQueue, busy),
	}
	w.intercept()
	consumed := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { w.judge.consume(ctx, w.Namespace.ConnectionString()); close(consumed) }()
	t.Cleanup(func() { cancel(); <-consumed })
	switch kind {
	case "run, with a file":
		w.settings["FEEDSCALE_STATE"] = "bolt:" + filepath.Join(w.folder, "feedscale.db")
		w.processes = []process{newStandalone(w)}
	case "run, with a table":
		w.processes = []process{newStandalone(w)}
	case "a host, and 5,000 events that wait":
		w.leaveWaiting(table)
		w.settings["FEEDSCALE_TICK_TIMEOUT"] = "10s" // a share of it must be enough to read them
		w.processes = []process{newHosted(w)}
	case "a host and run":
		w.processes = []process{newHosted(w), newStandalone(w)}
	default:
		for range map[string]int{"a host": 1, "two hosts": 2, "three hosts": 3}[kind] {
			w.processes = append(w.processes, newHosted(w))
		}
	}
	return w
}

// field is the value of a name in a connection string.
func field(connection, name string) string {
	_, value, _ := strings.Cut(connection, name+"=")
	value, _, _ = strings.Cut(value, ";")
	return value
}

// tell adds a line to the story of the world.
func (w *chaos) tell(format string, args ...any) {
	w.storyMu.Lock()
	defer w.storyMu.Unlock()
	_, _ = fmt.Fprintf(w.story, "%8.3fs "+format+"\n", append([]any{time.Since(w.began).Seconds()}, args...)...)
}

// breaks reports a broken promise.
func (w *chaos) breaks(format string, args ...any) {
	w.tell("BROKEN: "+format, args...)
	w.storyMu.Lock()
	w.broken = true
	w.storyMu.Unlock()
	w.t.Errorf("seed %d, story in %s: "+format, append([]any{w.seed, w.story.Name()}, args...)...)
}

// try is for calls of the test itself, which must succeed.
func (w *chaos) try(err error) {
	if err != nil {
		w.breaks("the stand-in: %v", err)
	}
}

// span is a partition key range and the end of its feed.
type span struct {
	ID  string `json:"id"`
	Min string `json:"minInclusive"`
	Max string `json:"maxExclusive"`
	tip int64
}

// ranges asks the account for the ranges of a container and the ends of their feeds.
func (w *chaos) ranges(p *watched) ([]span, error) {
	link := "dbs/" + testworld.Database + "/colls/" + p.name
	_, body, err := w.ask("pkranges", link, nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ PartitionKeyRanges []span }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	for i := range answer.PartitionKeyRanges {
		r := &answer.PartitionKeyRanges[i]
		header, _, err := w.ask("docs", link, map[string]string{"A-IM": "Incremental Feed", "If-None-Match": "*", "x-ms-documentdb-partitionkeyrangeid": r.ID})
		if err != nil {
			return nil, err
		}
		if r.tip, err = strconv.ParseInt(strings.Trim(header.Get("ETag"), `"`), 10, 64); err != nil {
			return nil, err
		}
	}
	return answer.PartitionKeyRanges, nil
}

// ask sends a request of the test itself, signed according to
// https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources.
func (w *chaos) ask(resource, link string, header map[string]string) (http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testworld.Busy)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Account.Endpoint()+link+"/"+resource, nil)
	if err != nil {
		return nil, nil, err
	}
	date := strings.ToLower(time.Now().UTC().Format(http.TimeFormat))
	key, err := base64.StdEncoding.DecodeString(cosmosfake.WellKnownKey)
	if err != nil {
		return nil, nil, err
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "get\n%s\n%s\n%s\n\n", resource, link, date)
	request.Header.Set("Authorization", url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2020-07-15")
	request.Header.Set("User-Agent", ownAgent)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := w.Transport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotModified {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return response.Header, body, err
}

// lease writes the lease of a range as an owner does that has processed up to an LSN.
func (w *chaos) lease(p *watched, r span, lsn int64) {
	fields := leasefake.Fields{Owner: pick(w.dice, []string{"worker-1", "worker-2", ""}), Continuation: leasefake.At(lsn), Updated: time.Now()}
	document := p.of.PKLease(r.ID, leasefake.Range{Min: r.Min, Max: r.Max}, fields)
	w.try(w.Account.Upsert(testworld.Database, testworld.Leases, document.Document()))
	p.leases[r.ID] = document.ID
}

// repair writes the leases of all ranges, each with a lag of so many, and deletes all other leases,
// as a host does after a split.
func (w *chaos) repair(p *watched, behind func() int64) error {
	ranges, err := w.ranges(p)
	if err != nil {
		return err
	}
	gone := p.leases
	p.leases = map[string]string{}
	for _, r := range ranges {
		w.lease(p, r, max(0, r.tip-behind()))
		delete(gone, r.ID)
	}
	for _, id := range gone {
		w.try(w.Account.Delete(testworld.Database, testworld.Leases, id, id))
	}
	return nil
}

// move changes the world as applications and the service do.
func (w *chaos) move() {
	p := w.processors[w.dice.below(len(w.processors)-1)] // all but busy, which is the last
	switch choice := w.dice.below(10); {
	case choice < 4:
		n := 1 + w.dice.below(3*perReplica)
		w.tell("%s: %d changes", p.name, n)
		w.Write(p.name, n)
		p.lag += n
	case choice < 8:
		behind := w.dice.below(2 * perReplica)
		if w.exact {
			behind = 0
		}
		err := w.repair(p, func() int64 { return int64(w.dice.below(behind + 1)) })
		if err == nil {
			p.lag = 0
		}
		w.tell("%s: leases come to within %d of the end: %v", p.name, behind, err)
	case choice < 9:
		if ranges, err := w.ranges(p); err == nil && len(ranges) < most {
			of := pick(w.dice, ranges).ID
			children, err := w.Account.Split(testworld.Database, p.name, of)
			w.tell("%s: range %s is split into %v: %v", p.name, of, children, err)
			w.try(err)
		}
	default:
		if ranges, err := w.ranges(p); err == nil && len(ranges) < most {
			of := pick(w.dice, ranges).ID
			finish, err := w.Account.StartSplit(testworld.Database, p.name, of)
			w.tell("%s: range %s is being split: %v", p.name, of, err)
			w.try(err)
			if err == nil {
				w.faults = append(w.faults, fault{p.name + " is being split", 1 + w.dice.below(10), func() { finish() }})
			}
		}
	}
}

// calm ends the faults whose time is over, or all.
func (w *chaos) calm(all bool) {
	var left []fault
	for _, f := range w.faults {
		if f.left--; !all && f.left > 0 {
			left = append(left, f)
			continue
		}
		w.tell("over: %s", f.name)
		f.end()
	}
	w.faults = left
}

// disturb begins a fault.
func (w *chaos) disturb() {
	var f fault
	switch choice := w.dice.below(10); {
	case choice < 5:
		f = w.cosmosFault(w.dice)
	case choice < 6:
		f = w.regionFault(w.dice)
	case choice < 8 && w.table.Load() == nil:
		f = w.tableFault(w.dice)
	case choice >= 8 && w.bus.Load() == nil:
		f = w.busFault(w.dice)
	default:
		return
	}
	if f.left == 0 {
		f.left = 1 + w.dice.below(6)
	}
	w.tell("for %d ticks: %s", f.left, f.name)
	w.faults = append(w.faults, f)
	w.record.add(func(r *record) { r.faults++ })
}

// step is one tick of every process, with the current faults.
func (w *chaos) step() {
	w.calm(false)
	for range w.dice.below(3) {
		w.move()
	}
	if w.dice.chance(0.5) && len(w.faults) < 4 {
		w.disturb()
	}
	var k *killing
	if w.dice.chance(0.25) {
		k = &killing{
			of: pick(w.dice, w.mortal()), signal: pick(w.dice, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}),
			step: pick(w.dice, killSteps()), nth: w.dice.below(3), done: w.dice.chance(0.5),
		}
		w.tell("%s at the request %d of %q, done %t", k.signal, k.nth, k.step, k.done)
		if k.step == "any moment" {
			timer := time.AfterFunc(time.Duration(w.dice.below(60))*time.Millisecond, func() {
				w.killMu.Lock()
				defer w.killMu.Unlock()
				w.fire(k)
			})
			defer timer.Stop()
		} else {
			w.killMu.Lock()
			w.kill = k
			w.killMu.Unlock()
		}
	}
	w.tick()
	w.killMu.Lock()
	if w.kill != nil {
		w.kill = nil
		w.tell("not reached")
	}
	w.killMu.Unlock()
	for _, i := range w.processes {
		i.revive()
	}
	w.look()
}

// mortal are the processes that may get a signal.
func (w *chaos) mortal() []process {
	return slices.DeleteFunc(slices.Clone(w.processes), func(p process) bool { return p == w.spared })
}

// tick lets every process tick, in parallel.
func (w *chaos) tick() {
	ctx, cancel := context.WithTimeout(w.t.Context(), testworld.Deadline)
	defer cancel()
	var all sync.WaitGroup
	for n, i := range w.processes {
		all.Go(func() {
			began := time.Now()
			i.tick(ctx)
			w.tell("process %d: a tick of %s", n, time.Since(began).Round(time.Millisecond))
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		w.breaks("a tick does not end")
	}
	w.record.add(func(r *record) { r.ticks += len(w.processes) })
}

// look reads the new log lines of the processes.
func (w *chaos) look() {
	for _, i := range w.processes {
		text := i.printed()
		for line := range strings.Lines(text) {
			w.tell("  | %s", strings.TrimSpace(line))
		}
		for _, secret := range w.secrets {
			if strings.Contains(text, secret) {
				w.breaks("a log has the secret %s", secret)
			}
		}
		if strings.Contains(text, "panic:") || strings.Contains(text, "goroutine ") {
			w.breaks("a process panicked: %s", text)
		}
	}
}

// settle ends all faults, makes a known backlog, and checks what every process says in the end.
func (w *chaos) settle() {
	w.calm(true)
	for _, p := range w.processors {
		if p.name == busy {
			p.lag = 20 * perReplica
			continue
		}
		if err := w.repair(p, func() int64 { return 0 }); err != nil {
			w.breaks("the stand-in: %v", err)
			return
		}
		p.lag = w.dice.below(most) * perReplica
		w.Write(p.name, p.lag)
		w.tell("%s: exactly %d changes", p.name, p.lag)
	}
	// to recover: an account that failed is asked again after at most 5 s, a queue at the next tick
	const longest, ticks = time.Minute + testworld.Busy, 60 // both have to pass: where the cores are busy, a tick takes seconds
	began := time.Now()
	rounds := 0
	for {
		rounds++
		w.tick()
		wrong := w.wrong()
		w.look()
		if wrong == "" {
			break
		}
		w.tell("not yet: %s", wrong)
		if time.Since(began) > longest && rounds >= ticks {
			w.breaks("%d ticks after the last fault: %s", rounds, wrong)
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-w.t.Context().Done():
			return
		}
	}
	w.judge.hold(busy, 2)
	w.record.add(func(r *record) {
		r.settled++
		r.rounds += rounds
		r.longest = max(r.longest, rounds)
	})
}

// shown is what the API says of a processor or a group.
type shown struct {
	Name            string
	Lag             *int
	DesiredReplicas *int
	Complete        bool
	Status          string
	PolledAt        time.Time
	Sequence, Epoch int64
}

// wrong returns what differs from the expected state; "" if nothing does.
func (w *chaos) wrong() string {
	want, ofGroup := map[string]int{}, 0
	for _, p := range w.processors {
		replicas := min(p.lag/perReplica, len(p.leases))
		want[p.name] = replicas
		if p.member {
			ofGroup = max(ofGroup, replicas)
		}
	}
	want[group] = ofGroup
	for n, i := range w.processes {
		status, body, err := i.get("/api/processors")
		var all struct{ Processors, Groups []shown }
		if err == nil {
			err = json.Unmarshal(body, &all)
		}
		if err != nil || status != http.StatusOK || len(all.Processors) != len(w.processors) || len(all.Groups) != 1 {
			return fmt.Sprintf("process %d answers %d, %v: %s", n, status, err, body)
		}
		for _, secret := range w.secrets {
			if strings.Contains(string(body), secret) {
				w.breaks("the API says the secret %s", secret)
			}
		}
		for at, p := range w.processors {
			if s := all.Processors[at]; s.Name != p.name || !s.Complete || s.Lag == nil || *s.Lag != p.lag {
				return fmt.Sprintf("process %d says of %s, whose lag is %d: %s", n, p.name, p.lag, body)
			}
		}
		for _, s := range append(all.Processors, all.Groups...) {
			if s.DesiredReplicas == nil || *s.DesiredReplicas != want[s.Name] {
				return fmt.Sprintf("process %d has %v replicas of %s, want %d: %s", n, s.DesiredReplicas, s.Name, want[s.Name], body)
			}
		}
	}
	for _, subject := range []string{"orders", group, busy} {
		if e, ok := w.judge.last(subject); !ok || e.DesiredReplicas != want[subject] || e.Active != (want[subject] > 0) {
			return fmt.Sprintf("the consumer has %d replicas of %s by event %d of %d, want %d; sent was %s, and %d messages wait",
				e.DesiredReplicas, subject, e.Sequence, e.Epoch, want[subject], w.judge.newest(subject), len(w.Namespace.Messages(testworld.Queue)))
		}
	}
	if n := len(w.Namespace.Messages(signalQueue)); n != want["orders"] {
		return fmt.Sprintf("%d signals, want %d", n, want["orders"])
	}
	return ""
}
