package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// world is all there is in one run.
type world struct {
	plan
	dice        dice
	rates       map[string]float64
	concurrency int  // requests that a process may have in flight at each account
	neighbours  bool // accounts have several containers, of which some are bad
	began       time.Time

	mu        sync.Mutex
	tick      int
	faulty    bool      // faults may happen in this tick
	quiet     int       // ticks since the last one in which they could
	ticked    time.Time // when this tick began
	accounts  []*account
	all       []*configured
	group     scaling.GroupPolicy
	version   int // of the configuration
	final     bool
	processes []*process
	started   int
	rows      rows
	documents map[string]state.Document
	versions  int
	broker    broker
	consumers map[string]*consumer

	groupSignal string                  // the signal queue of the group; "" = none
	queues      map[string]*signalQueue // by name
	wanted      map[string][]int        // replicas that were decided in this tick or before it, by subject

	events   map[string]map[string][]byte // committed, by subject and id, of the last ones
	accepted map[string]string            // id of the newest that the broker took
	epochs   map[string]int64             // of lives that are over
	beyond   map[string]map[string]beyond // by processor and lease
	sights   map[string]sights            // by processor

	unrecorded bool   // came and choices stay empty
	behind     func() // called behind each tick; nil = nothing is

	came    map[choice]bool
	choices []choice
	failure *failure
	story   *[]string
	polls   int // ticks of processes
	atOnce  int // requests of one process that were in flight at one account, at most
}

// configured is a processor of the processors file.
type configured struct {
	name      string
	account   *account
	marked    bool // it writes a marker once all leases exist
	policy    scaling.Policy
	startFrom changefeed.StartFrom
	every     time.Duration // 0 = at every tick
	group     string
	mode      string // of throughput; "" = off
	signal    string // queue; "" = none
}

const groupName = "together"

func newWorld(p plan, story *[]string) *world {
	w := &world{
		plan: p, dice: dice(p.seed), began: time.Now(), rows: rows{}, documents: map[string]state.Document{}, consumers: map[string]*consumer{}, queues: map[string]*signalQueue{},
		broker: broker{seen: map[string]time.Time{}}, events: map[string]map[string][]byte{}, accepted: map[string]string{},
		epochs: map[string]int64{}, beyond: map[string]map[string]beyond{}, sights: map[string]sights{}, came: map[choice]bool{}, story: story,
	}
	w.swarm()
	for i := range 1 + w.dice.upTo(3, "accounts", "") {
		host := fmt.Sprintf("shop%d.documents.azure.com", i)
		a := &account{
			host: host, name: host, in: cosmos.Container{Database: "shop", ID: "orders"}, leased: cosmos.Container{Database: "shop", ID: "leases"},
			leases: map[string]*lease{}, markers: map[string]bool{}, ru: found,
		}
		a.regions = 1 + w.dice.upTo(2, "regions", a.host)
		a.dear = w.dice.roll("dear", a.host) < 0.5
		w.monitor(a, fmt.Sprint("p", i))
		for j := 0; w.neighbours && j < 2; j++ {
			neighbour := *a
			neighbour.name, neighbour.ranges = fmt.Sprint(a.host, "/", j), nil
			neighbour.leases, neighbour.markers = map[string]*lease{}, map[string]bool{}
			neighbour.in.ID, neighbour.leased.ID = fmt.Sprint("stock", j), fmt.Sprintf("stock%d-leases", j)
			w.monitor(&neighbour, fmt.Sprintf("n%d%d", i, j))
		}
	}
	if len(w.all) > 1 && w.dice.roll("group", "") < 0.4 {
		w.all[0].group, w.all[1].group = groupName, groupName
		w.group.MinReplicas = w.dice.upTo(2, "group min", "")
		if w.dice.roll("group max", "") < 0.3 {
			w.group.MaxReplicas = new(2)
		}
		for _, member := range w.all[:2] {
			member.signal = "" // its group has one
		}
		if w.dice.roll("group signal", "") < 0.5 {
			w.groupSignal = "signals-" + groupName
		}
	}
	for range 1 + w.dice.upTo(2, "pollers", "") {
		w.processes = append(w.processes, nil)
	}
	return w
}

// monitor adds a container with its processors.
func (w *world) monitor(a *account, processors string) {
	n := 1 + w.dice.upTo(3, "ranges", a.name)
	for r := range n {
		a.ranges = append(a.ranges, &keyRange{id: fmt.Sprint(r), min: r * lastKey / n, max: (r + 1) * lastKey / n})
	}
	w.accounts = append(w.accounts, a)
	for j := range 1 + w.dice.upTo(2, "processors", a.name) {
		w.all = append(w.all, w.configure(fmt.Sprint(processors, j), a))
	}
}

// asked returns the container that a request is for, among those of an account.
func (w *world) asked(first *account, path string) *account {
	for _, a := range w.accounts {
		if a.host == first.host && a.name != a.host && strings.Contains(path, "/colls/"+a.in.ID) {
			return a
		}
	}
	return first
}

const badTicks = 4 // for which a container is bad

// isBad reports whether no partition of a container answers, while the account does.
func (w *world) isBad(a *account) bool { return w.lasts("bad container", a.name, badTicks) }

// isGood reports whether a container has to be measured, whatever becomes of the others of its account: it
// answers, and did at the last poll of each processor. One that did not waits behind those that did.
func (w *world) isGood(a *account) bool { return a.bad == 0 || w.tick > a.bad+3 }

// waits reports whether a container that was bad waits for one that is: with one request in flight, all that
// fail share it.
func (w *world) waits(a *account) bool {
	return w.concurrency == 1 && !w.isGood(a) && slices.ContainsFunc(w.accounts, func(other *account) bool {
		return other.host == a.host && w.isBad(other)
	})
}

func (w *world) configure(name string, a *account) *configured {
	n := func(of int, what string) int { return w.dice.upTo(of, what, name) }
	c := &configured{name: name, account: a}
	c.policy = scaling.Policy{
		Threshold: 20, Activation: int64(5 * n(2, "activation")), MinReplicas: n(2, "min"), Cooldown: time.Duration(30*(1+n(2, "cooldown"))) * time.Second,
		Health: health.Policy{StalledAfter: 5 * time.Minute, StalledPolls: 2, LeaseExpiration: time.Minute}, ExcludeStalled: n(2, "exclude") == 0,
		Sizing: scaling.SizingThreshold,
		Fallback: scaling.Fallback{
			FailureThreshold: 2 * n(2, "failures"), Replicas: 1 + n(3, "fallback replicas"),
			Behavior: []scaling.FallbackBehavior{scaling.FallbackMax, scaling.FallbackMax, scaling.FallbackStatic, scaling.FallbackCurrent, scaling.FallbackCurrentIfHigher, scaling.FallbackCurrentIfLower}[n(6, "fallback")],
		},
	}
	c.policy.Behavior.ScaleDown.StabilizationWindow = time.Duration(45*n(2, "window")) * time.Second
	if n(3, "most") == 0 {
		c.policy.MaxReplicas = new(4)
	}
	if n(5, "sizing") == 0 {
		c.policy.Sizing, c.policy.CatchUpWithin = scaling.SizingAuto, time.Minute
	}
	c.marked = n(2, "marker") == 0
	c.startFrom = changefeed.StartFrom{Beginning: n(3, "start") > 0}
	if n(4, "every") == 0 {
		c.every = 2 * interval
	}
	c.mode = []string{"", "apply", "apply", "recommend"}[n(4, "mode")]
	if n(2, "signal") == 0 {
		c.signal = "signals-" + name
	}
	return c
}

// configured returns the processors file as it is now.
func (w *world) configured() (list []*configured) {
	for _, c := range w.all {
		if w.alone != nil && !slices.Contains(w.alone, c.name) {
			continue
		}
		now := *c
		if w.version > 0 && !w.final {
			switch w.dice.upTo(6, "version", c.name, w.version) {
			case 0:
				now.policy.Paused = true
			case 1:
				continue // it was removed
			case 2:
				now.mode = []string{"", "apply", "recommend"}[w.dice.upTo(3, "mode", c.name, w.version)]
			}
		}
		if w.version > 0 && now.signal != "" {
			switch w.dice.upTo(6, "signal", c.name, w.version) {
			case 0:
				now.signal = ""
			case 1:
				now.signal = "others-" + c.name
			}
		}
		if w.final || c.account.name != c.account.host {
			now.mode = ""
		}
		list = append(list, &now)
	}
	return list
}

func (w *world) find(name string) *configured {
	for _, c := range w.configured() {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (w *world) members() (members []*configured) {
	for _, c := range w.configured() {
		if c.group != "" {
			members = append(members, c)
		}
	}
	return members
}

const quietTicks = 14 // of a phase without faults: more than a heartbeat

// phase says whether faults may happen in this tick. A run ends with a phase in which none can, and
// throughput is switched off.
func (w *world) phase() {
	noisy := 8 + w.dice.upTo(30, "noisy", "")
	last := w.ticks - quietTicks
	w.faulty = w.tick < last && w.tick%(noisy+quietTicks) < noisy
	if w.faulty {
		w.quiet = 0
	} else {
		w.quiet++
	}
	if w.tick == last {
		w.final = true
		w.processes = make([]*process, len(w.processes))
	}
}

// run runs a world to its end, or until something is not as it has to be.
func (w *world) run() {
	for w.tick = 0; w.tick < w.ticks && w.failure == nil; w.tick++ {
		start := time.Now()
		w.phase()
		w.mu.Lock()
		w.turn()
		var restless []*account
		for _, a := range w.accounts {
			w.move(a, 0)
			if w.happens("moves within", a.name, 0) {
				restless = append(restless, a)
			}
		}
		polling := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return p == nil })
		for _, p := range polling {
			p.prepare()
		}
		w.prepareSignals()
		w.polls += len(polling)
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.ticked = time.Now()
		var running sync.WaitGroup
		for _, p := range polling {
			running.Go(p.tick)
		}
		for _, a := range restless {
			running.Go(func() {
				time.Sleep(time.Duration(w.dice.upTo(int(300*time.Millisecond), "moves at", a.name, w.tick)))
				w.mu.Lock()
				defer w.mu.Unlock()
				w.move(a, 1)
			})
		}
		running.Wait()
		w.mu.Lock()
		w.deliver()
		w.check()
		w.mu.Unlock()
		if w.behind != nil {
			w.behind()
		}
		time.Sleep(time.Until(start.Add(interval)))
	}
}

// turn is what happens to processes and states between two ticks.
func (w *world) turn() {
	if w.happens("reconfigure", "", 0) {
		w.version++
		w.processes = make([]*process, len(w.processes))
		w.tell("the configuration changes")
	}
	for slot, p := range w.processes {
		offset := time.Duration(0)
		if p != nil {
			offset = p.offset
		}
		switch {
		case w.happens("absent", "poller", slot):
			w.processes[slot] = nil
			continue
		case p == nil || p.dead:
			p = w.start(slot)
			w.processes[slot] = p
			w.tell("%s starts", p.name)
		}
		p.offset = offset
		switch {
		case !w.faulty:
			p.offset = 0
		case w.happens("clock jump", "poller", slot):
			p.offset = time.Duration(w.dice.upTo(int(4*time.Hour), "jump", "", slot, w.tick)) - 2*time.Hour
			w.tell("the clock of %s is off by %s", p.name, p.offset)
		}
	}
	for _, subject := range sortedKeys(w.rows) {
		if w.happens("row gone", subject, 0) {
			w.epochs[subject] = w.rows[subject].last.Epoch
			delete(w.rows, subject)
			w.tell("the state of %s is lost", subject)
		}
	}
}

// move has an account go on: its writers, its processors, and its partitions.
func (w *world) move(a *account, part int) {
	if w.isBad(a) || w.waits(a) {
		a.bad = w.tick
	}
	if w.happens("split", a.name, part) {
		w.split(a)
	}
	if w.happens("merge", a.name, part) {
		w.merge(a)
	}
	for _, r := range a.ranges {
		if r.gone || len(r.changes) > 400 {
			continue
		}
		n := 0
		switch busy := w.dice.roll("busy", a.name+r.id, w.tick, part); {
		case busy < 0.5:
		case busy < 0.9:
			n = 1 + w.dice.upTo(5, "writes", a.name+r.id, w.tick, part)
		default:
			n = 10 + w.dice.upTo(50, "burst", a.name+r.id, w.tick, part)
		}
		for i := range n {
			a.write(r, time.Now(), r.min+w.dice.upTo(r.max-r.min, "key", a.name+r.id, w.tick, part, i))
		}
	}
	for _, c := range w.all {
		if c.account == a {
			w.work(c, part)
			w.lose(c, part)
		}
	}
	a.forget()
}

func (a *account) live() (live []*keyRange) {
	for _, r := range a.ranges {
		if !r.gone {
			live = append(live, r)
		}
	}
	return live
}

func (w *world) split(a *account) {
	live := a.live()
	r := live[w.dice.upTo(len(live), "which", a.name, w.tick)]
	if len(live) > 4 || r.max-r.min < 8 {
		return
	}
	middle := (r.min + r.max) / 2
	for _, bounds := range [...][2]int{{r.min, middle}, {middle, r.max}} {
		child := &keyRange{id: fmt.Sprint(len(a.ranges)), min: bounds[0], max: bounds[1], lsn: r.lsn, parents: append(slices.Clone(r.parents), r.id), derived: true}
		for _, c := range r.changes {
			if c.key >= child.min && c.key < child.max {
				child.changes = append(child.changes, c)
			}
		}
		a.ranges = append(a.ranges, child)
	}
	r.gone, r.changes, a.moved = true, nil, time.Now()
	w.tell("range %s of %s is split", r.id, a.name)
}

func (w *world) merge(a *account) {
	live := a.live()
	if len(live) < 2 {
		return
	}
	slices.SortFunc(live, func(a, b *keyRange) int { return a.min - b.min })
	i := w.dice.upTo(len(live)-1, "which pair", a.name, w.tick)
	left, right := live[i], live[i+1]
	merged := &keyRange{id: fmt.Sprint(len(a.ranges)), min: left.min, max: right.max, lsn: max(left.lsn, right.lsn), derived: true}
	merged.parents = slices.Concat(left.parents, right.parents, []string{left.id, right.id})
	merged.changes = slices.Concat(left.changes, right.changes)
	for i := range merged.changes {
		merged.changes[i].merged = true
	}
	slices.SortStableFunc(merged.changes, func(a, b change) int { return int(a.lsn - b.lsn) })
	left.gone, right.gone, left.changes, right.changes = true, true, nil, nil
	a.ranges, a.moved = append(a.ranges, merged), time.Now()
	w.tell("ranges %s and %s of %s are merged", left.id, right.id, a.name)
}

// leasesOf returns the leases of a processor, in order.
func (w *world) leasesOf(c *configured) (leases []*lease) {
	for _, id := range sortedKeys(c.account.leases) {
		if strings.HasPrefix(id, c.name+c.account.host) {
			leases = append(leases, c.account.leases[id])
		}
	}
	return leases
}

func (c *configured) addLease(l lease) {
	prefix := c.name + c.account.host + "_q0oIAA==_" + containerRID
	l.id = prefix + ".." + l.token
	c.account.leases[l.id] = &l
	c.account.changed = time.Now()
	if c.marked {
		c.account.markers[prefix+".info"] = true
	}
}

// holes are the keys that no lease of a processor covers.
func (w *world) holes(c *configured) (holes []changefeed.Range) {
	at := 0
	leases := w.leasesOf(c)
	slices.SortFunc(leases, func(a, b *lease) int { return a.min - b.min })
	for _, l := range append(leases, &lease{min: lastKey, max: lastKey}) {
		if at < l.min {
			holes = append(holes, changefeed.Range{Min: bound(at), Max: bound(l.min)})
		}
		at = max(at, l.max)
	}
	return holes
}

// mended is how many ticks without a fault a lease that was lost stays so.
const mended = 8

// lose has a lease vanish, or replaced by one from elsewhere, which somebody mends once faults are over.
func (w *world) lose(c *configured, part int) {
	leases := w.leasesOf(c)
	for i, l := range leases {
		ranges, _ := c.account.of(l)
		switch {
		case len(ranges) > 1:
		case w.happens("lease from elsewhere", l.id, part):
			l.position, c.account.moved = ranges[0].lsn+1000, time.Now()
			w.tell("lease %s of %s is from elsewhere", l.token, c.name)
		case !w.faulty && l.position > ranges[0].lsn:
			l.position = ranges[0].lsn
		case i > 0 && w.happens("lease lost", l.id, part):
			delete(c.account.leases, l.id)
			c.account.changed, c.account.moved = time.Now(), time.Now()
			w.tell("lease %s of %s is lost", l.token, c.name)
		}
	}
	if w.faulty || w.quiet < mended || len(leases) == 0 {
		return
	}
	for _, hole := range w.holes(c) {
		for _, r := range c.account.live() {
			low, high := max(key(hole.Min), r.min), min(key(hole.Max), r.max)
			if low < high {
				c.addLease(lease{token: bound(low) + "-" + bound(high), version: 1, min: low, max: high, position: r.lsn})
			}
		}
	}
}

// work is what the replicas of a processor do in an interval: as many as its consumer was told.
func (w *world) work(c *configured, part int) {
	subject := c.name
	if c.group != "" {
		subject = c.group
	}
	replicas := 0
	if v := w.consumers[subject]; v != nil {
		replicas = v.event.DesiredReplicas
	}
	if w.lasts("hosts gone", c.name, 6) {
		replicas = 0
	}
	leases := w.leasesOf(c)
	if replicas == 0 {
		for _, l := range leases {
			l.owner = ""
		}
		return
	}
	c.account.moved = time.Now()
	if len(leases) == 0 {
		for _, r := range c.account.live() {
			c.addLease(lease{token: r.id, min: r.min, max: r.max, position: -1})
		}
		leases = w.leasesOf(c)
	}
	shift := 0
	if w.happens("owner change", c.name, part) {
		shift = 1
	}
	for i, l := range leases {
		l.owner, l.renewed = fmt.Sprintf("host-%d", (i+shift)%replicas), time.Now()
		if ranges, own := c.account.of(l); !own && (l.version == 0 || len(ranges) > 1) {
			if !w.lasts("unrepaired", c.name, 8) {
				w.repair(c, l, ranges)
			}
			continue
		}
		if w.lasts("hung", l.id, 30) {
			continue
		}
		if l.position > 0 && w.happens("rewind", l.id, part) {
			l.position = max(0, l.position-int64(w.dice.upTo(10, "back", l.id, w.tick)))
			continue
		}
		w.process(c.account, l, 1+15*replicas/len(leases))
	}
}

// process moves a lease on by so many changes.
func (w *world) process(a *account, l *lease, n int) {
	ranges, _ := a.of(l)
	for _, r := range ranges {
		for _, c := range r.changes {
			if n > 0 && c.lsn > l.position && c.key >= l.min && c.key < l.max {
				l.position, n = c.lsn, n-1
			}
		}
	}
}

// repair replaces a lease whose range is gone, as the .NET processor does (azure-cosmos-dotnet-v3,
// PartitionSynchronizerCore.cs): a PK-range lease by those of the ranges it was split into or, where it was
// merged, by an EPK lease of its old bounds; an EPK lease by its parts.
func (w *world) repair(c *configured, l *lease, ranges []*keyRange) {
	delete(c.account.leases, l.id)
	w.tell("lease %s of %s is replaced", l.token, c.name)
	within := !slices.ContainsFunc(ranges, func(r *keyRange) bool { return r.min < l.min || r.max > l.max })
	if l.version == 0 && within {
		for _, r := range ranges {
			c.addLease(lease{token: r.id, min: r.min, max: r.max, position: l.position})
		}
		return
	}
	if l.version == 0 {
		ranges = []*keyRange{{min: l.min, max: l.max}}
	}
	for _, r := range ranges {
		low, high := max(l.min, r.min), min(l.max, r.max)
		c.addLease(lease{token: bound(low) + "-" + bound(high), version: 1, min: low, max: high, position: l.position})
	}
}
