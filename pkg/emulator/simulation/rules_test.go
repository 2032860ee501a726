package simulation_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// committed is called for each State that is written, before it replaces the one before.
func (w *world) committed(p *process, r *row, next state.State, event *state.Event) {
	prev := &r.last
	w.decided(next.Processor, &next)
	w.ofEvents(prev, &next, event)
	if len(next.Members) > 0 {
		w.ofGroup(p, prev, &next)
		return
	}
	c := w.find(next.Processor)
	if c == nil {
		w.fail("nothing is polled that is not configured", "%s", next.Processor)
		return
	}
	w.ofLag(p, c, &next.Lag)
	w.ofAhead(p, c, &next)
	w.ofCoverage(c, &prev.Lag, &next.Lag)
	w.ofDecision(c, prev, &next)
}

// ofEvents: an event is committed with each decision that is due for one, and with no other.
func (w *world) ofEvents(prev, next *state.State, event *state.Event) {
	name := next.Processor
	if prev.Epoch != 0 && next.Epoch != prev.Epoch || next.Epoch <= w.epochs[name] {
		w.fail("a life keeps its epoch, and the next has a later one", "%s: %d, %d before, %d in an earlier life", name, next.Epoch, prev.Epoch, w.epochs[name])
	}
	last := prev.Published
	if next.Group != "" {
		last = nil
	}
	due := next.Decision != nil && !next.Paused && next.Group == "" &&
		(last == nil || last.Replicas != next.Decision.Replicas || last.Active != next.Decision.Active || next.AttemptedAt.Sub(last.Time).Abs() >= heartbeat)
	if due != (event != nil) {
		w.fail("an event is committed where a decision is new, or a heartbeat due, and else none", "%s: event %t, due %t", name, event != nil, due)
	}
	if event == nil {
		if next.Sequence != prev.Sequence {
			w.fail("a sequence is of an event", "%s: %d, %d before", name, next.Sequence, prev.Sequence)
		}
		return
	}
	e, err := events.Decode(event.Body)
	if err != nil {
		w.fail("an event can be read", "%v", err)
		return
	}
	totals := next.Totals()
	switch {
	case event.Sequence != prev.Sequence+1 || next.Sequence != event.Sequence || e.Sequence != event.Sequence || e.Epoch != next.Epoch:
		w.fail("sequences have no gap where they are made", "%s: %d, %d in the event, %d before", name, next.Sequence, e.Sequence, prev.Sequence)
	case next.Decision == nil || e.DesiredReplicas != next.Decision.Replicas || e.Active != next.Decision.Active:
		w.fail("an event says what was decided", "%s: %d", name, e.DesiredReplicas)
	case (last == nil) != (e.PreviousReplicas == nil) || last != nil && *e.PreviousReplicas != last.Replicas:
		w.fail("the first event has no replicas before it, and each other one those of the event before", "%s: sequence %d", name, e.Sequence)
	case (e.Lag == nil) != (totals.Lag == nil) || e.Complete != totals.Complete:
		w.fail("what is unknown is null in an event", "%s: sequence %d", name, e.Sequence)
	case next.Published == nil || next.Published.Replicas != e.DesiredReplicas:
		w.fail("a State knows what its event says", "%s: sequence %d", name, e.Sequence)
	}
	made := w.events[name]
	if made == nil {
		made = map[string][]byte{}
		w.events[name] = made
	}
	if _, again := made[e.ID()]; again {
		w.fail("a sequence is used once", "%s: %d", name, e.Sequence)
	}
	made[e.ID()] = bytes.Clone(event.Body)
	delete(made, idOf(name, e.Epoch, e.Sequence-200))
}

// idOf is the id of an event of a subject.
func idOf(subject string, epoch, sequence int64) string {
	return events.Data{Processor: subject, Epoch: epoch, Sequence: sequence}.ID()
}

// published is called for each event that the broker takes.
func (w *world) published(p *process, e events.ScaleEvent, body []byte) {
	name, id := e.Subject(), e.ID()
	switch made, known := w.events[name][id]; {
	case !known:
		w.fail("nothing is published that was not committed", "%s: sequence %d", name, e.Sequence)
	case !bytes.Equal(made, body):
		w.fail("an event is repeated with the same bytes", "%s: sequence %d", name, e.Sequence)
	}
	if id < p.sent[name] {
		w.fail("a process publishes the events of a subject in their order", "%s after %s", id, p.sent[name])
	}
	p.sent[name] = id
	w.accepted[name] = max(w.accepted[name], id)
}

// removed is called for each event that leaves an outbox.
func (w *world) removed(r *row, sequence int64) {
	if !slices.ContainsFunc(r.outbox, func(e state.Event) bool { return e.Sequence == sequence }) {
		return
	}
	newest := r.outbox[len(r.outbox)-1].Sequence
	if sequence == newest && w.accepted[r.last.Processor] < idOf(r.last.Processor, r.last.Epoch, sequence) {
		w.fail("an event leaves the outbox when it was published or overtaken", "%s: sequence %d", r.last.Processor, sequence)
	}
}

// ofLag: what is said to be known was heard from the service in this very tick, and is what the model has.
func (w *world) ofLag(p *process, c *configured, lag *changefeed.ProcessorLag) {
	a := c.account
	if lag.Error == "" && !p.heard[a.name] {
		w.fail("leases are known by a whole answer alone", "%s", c.name)
	}
	unmeasured := func(p changefeed.Partition) bool { return !p.Known() && p.Ahead == nil }
	moved := !a.moved.Before(w.ticked)
	// By a clock that is off, the next tick of an account that hung may be due at once.
	if w.neighbours && !moved && p.offset == 0 && w.isGood(a) && (lag.Error != "" || slices.ContainsFunc(lag.Partitions, unmeasured)) {
		w.fail("a container that does not answer blinds no other one", "%s: %s", c.name, lag.Problem())
	}
	if lag.Bootstrap && !moved && len(w.leasesOf(c)) > 0 {
		w.fail("a processor with leases is not one that never ran", "%s", c.name)
	}
	counted := map[string]bool{}
	said, pending, merged := int64(0), int64(0), false // of the leases whose positions are known
	for i := range lag.Partitions {
		partition := &lag.Partitions[i]
		counted[partition.Lease] = true
		l := w.leaseOf(c, partition.Lease)
		if l == nil {
			if !moved {
				w.fail("a partition has a lease", "%s: %s", c.name, partition.Lease)
			}
			continue
		}
		ranges, own := a.of(l)
		heard := p.heard[a.name+" "+l.token]
		for _, r := range ranges {
			heard = heard || p.heard[a.name+" "+r.id]
		}
		switch {
		case partition.Ahead != nil && !moved && l.position <= ranges[0].lsn:
			w.fail("a position is not said to be ahead that the feed has reached", "%s: lease %s at %d", c.name, l.token, l.position)
			continue
		case partition.Lag == nil && partition.Status != changefeed.StatusUnknown && partition.Ahead == nil:
			w.fail("what is unknown is said to be unknown", "%s: lease %s is %s", c.name, l.token, partition.Status)
		case partition.Lag == nil || partition.Carried():
			continue
		case !heard && !moved && own:
			w.fail("nothing is known that was not heard", "%s: lease %s has a lag of %d", c.name, l.token, *partition.Lag)
		}
		changes, exact := a.truth(l)
		if !slices.ContainsFunc(ranges, func(r *keyRange) bool { return r.derived }) {
			exact = int64(changes)
		}
		most := max(1, exact)
		if partition.Status == changefeed.StatusSplitting {
			most = p.most(a, l)
		}
		uncheckpointed := l.position < 0 && c.startFrom.Now()
		if !uncheckpointed {
			said, pending = said+*partition.Lag, pending+int64(changes)
			merged = merged || slices.ContainsFunc(ranges, func(r *keyRange) bool { return r.pendsMerged(l.position) })
		}
		switch {
		case moved || uncheckpointed:
		case *partition.Lag == 0 && changes > 0:
			w.fail("zero means that nothing is pending", "%s: lease %s has %d changes pending", c.name, l.token, changes)
		case partition.Approximate && *partition.Lag < 1:
			w.fail("a lag that is not exact is at least 1", "%s: lease %s", c.name, l.token)
		case !partition.Approximate && *partition.Lag != exact:
			w.fail("a lag is that of the model", "%s: lease %s has %d, not %d", c.name, l.token, exact, *partition.Lag)
		case partition.Approximate && *partition.Lag > most:
			w.fail("a lag that is not exact is no more than what there is", "%s: lease %s has %d, not %d", c.name, l.token, most, *partition.Lag)
		}
	}
	if lag.Error != "" || moved {
		return
	}
	if lag.Complete() && !merged && said < pending {
		w.fail("what is known together is no less than what is pending", "%s: %d, and %d changes are pending", c.name, said, pending)
	}
	for _, l := range w.leasesOf(c) {
		if !counted[l.token] && !slices.Contains(lag.Leftover, l.token) {
			w.fail("each lease is counted", "%s: %s is not", c.name, l.token)
		}
	}
}

// beyond is a position that the feed has not reached, as polls in a row measured it.
type beyond struct {
	epoch    int64 // of the State
	position int64 // at the first of them
	since    time.Time
	polls    int
}

// ofAhead: a position that the feed has not reached at three polls, and for 60 s, is found
// (docs/lag.md, Positions that the feed has not reached). ofDecision holds that it scales nothing in.
// Polls by a clock that is off do not count.
func (w *world) ofAhead(p *process, c *configured, next *state.State) {
	if next.Lag.Error != "" {
		return // nothing was measured, and nothing is forgotten
	}
	seen := map[string]beyond{}
	for i := range next.Lag.Partitions {
		partition := &next.Lag.Partitions[i]
		l, b := w.leaseOf(c, partition.Lease), w.beyond[c.name][partition.Lease]
		if l == nil || p.offset != 0 {
			continue
		}
		ranges, own := c.account.of(l)
		if len(ranges) != 1 || !own && l.version == 0 || l.position <= ranges[0].lsn {
			continue
		}
		measured := c.account.moved.Before(w.ticked) && partition.SessionLSN != nil && (partition.Lag != nil || partition.Ahead != nil)
		if b.epoch != next.Epoch || b.position <= ranges[0].lsn {
			if b = (beyond{}); measured {
				b = beyond{epoch: next.Epoch, position: l.position, since: next.AttemptedAt}
			}
		}
		if measured {
			b.polls++
		}
		if measured && b.polls >= 3 && next.AttemptedAt.Sub(b.since) >= time.Minute && partition.Ahead == nil {
			w.fail("a position that the feed has not reached is found", "%s: lease %s at %d of %d", c.name, l.token, l.position, ranges[0].lsn)
		}
		seen[partition.Lease] = b
	}
	w.beyond[c.name] = seen
}

func (w *world) leaseOf(c *configured, token string) *lease {
	for _, l := range w.leasesOf(c) {
		if l.token == token {
			return l
		}
	}
	return nil
}

// ofDecision: docs/decide.md from outside.
func (w *world) ofDecision(c *configured, prev, next *state.State) {
	name, policy, before := c.name, c.policy, prev.Memory.Replicas
	if policy.Paused {
		if (before == nil) != (next.Memory.Replicas == nil) || before != nil && *before != *next.Memory.Replicas {
			w.fail("a pause keeps the decision", "%s", name)
		}
		return
	}
	lag := &next.Lag
	failures := next.Memory.Failures
	measured := lag.Known() || lag.Ahead()
	fallsBack := !measured && failures > policy.Fallback.FailureThreshold
	if measured != (failures == 0) || !measured && failures != prev.Memory.Failures+1 {
		w.fail("failures are counted in a row", "%s: %d, %d before", name, failures, prev.Memory.Failures)
	}
	d := next.Decision
	if d == nil {
		if lag.Complete() {
			w.fail("what is known is decided", "%s", name)
		}
		return
	}
	most := math.MaxInt
	if policy.MaxReplicas != nil {
		most = *policy.MaxReplicas
	}
	if d.Replicas < policy.MinReplicas || d.Replicas > most {
		w.fail("minReplicaCount and maxReplicaCount hold", "%s: %d", name, d.Replicas)
	}
	switch {
	case !lag.Known() && !fallsBack && before == nil:
		w.fail("nothing is decided from nothing", "%s: %d", name, d.Replicas)
	case !lag.Known() && !fallsBack && d.Replicas != *before:
		w.fail("a failure holds the last decision", "%s: %d, %d before", name, d.Replicas, *before)
	case fallsBack:
		w.ofFallback(c, prev, next)
	case !lag.Complete() && before != nil && (d.Replicas < min(1, *before) || prev.Memory.Active && !d.Active):
		w.fail("no step to zero while a partition is unknown", "%s: %d, %d before", name, d.Replicas, *before)
	case !lag.Complete() && before != nil && d.Replicas < *before && !standIn(lag, next.AttemptedAt):
		w.fail("no scale-in while nothing recent is known of a partition", "%s: %d, %d before", name, d.Replicas, *before)
	case lag.Complete():
		w.ofNeed(c, prev, next, most)
	}
}

// standIn reports whether an earlier reading stands in for each partition that is unknown, or the mean
// of the others after an hour.
func standIn(lag *changefeed.ProcessorLag, now time.Time) bool {
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		if e := p.Earlier; !p.Known() && (e == nil || e.Lag == nil && now.Sub(e.Since) < time.Hour) {
			return false
		}
	}
	return lag.Error == ""
}

// shared is what step 1 leaves out of leases that began at the position of one that was split.
func shared(lag *changefeed.ProcessorLag, threshold int64) (out int64) {
	greatest := int64(0)
	for i := range lag.Partitions {
		if p := &lag.Partitions[i]; p.Inherited {
			greatest = max(greatest, *p.Lag)
			out += max(0, *p.Lag-threshold)
		}
	}
	return out - max(0, greatest-threshold)
}

// sights are polls of a processor without a fault, in all of which its account had the same leases.
type sights struct {
	changed time.Time // when a lease came or went last
	fault   int       // tick of the last fault
	polls   int
}

// ofCoverage: keys that no lease covers are found, and no others. Three polls have to see the same
// leases (docs/lag.md, Keys that no lease covers).
func (w *world) ofCoverage(c *configured, prev, next *changefeed.ProcessorLag) {
	a, holes, got := c.account, w.holes(c), next.Coverage.Holes
	if !a.moved.Before(w.ticked) || next.Error != "" || next.Bootstrap {
		return
	}
	if !prev.Uncovered() && next.Uncovered() && !slices.Equal(got, holes) {
		w.fail("no hole between leases is invented", "%s: %v, not %v", c.name, got, holes)
	}
	seen := w.sights[c.name]
	if fault := w.tick - w.quiet; seen.fault != fault || seen.changed != a.changed {
		seen = sights{changed: a.changed, fault: fault}
	}
	seen.polls++
	w.sights[c.name] = seen
	if len(holes) > 0 && got != nil && len(got) == 0 && w.quiet > 0 && seen.polls >= 3 && next.Coverage.Failing.IsZero() &&
		next.Status() != changefeed.StatusSplitting {
		w.fail("a hole between leases is found", "%s: %v", c.name, holes)
	}
}

// ofFallback is step 8, in the words of KEDA.
func (w *world) ofFallback(c *configured, prev, next *state.State) {
	d := next.Decision
	before, n := -1, c.policy.Fallback.Replicas
	if prev.Memory.Replicas != nil {
		before = *prev.Memory.Replicas
	}
	known, least := true, 0
	switch c.policy.Fallback.Behavior {
	case scaling.FallbackStatic:
		least = min(n, max(before, n))
	case scaling.FallbackCurrent:
		known, least = before >= 0, before
	case scaling.FallbackCurrentIfHigher:
		least = max(n, before)
	case scaling.FallbackCurrentIfLower:
		if least = n; before >= 0 {
			least = min(n, before)
		}
	case scaling.FallbackMax:
		known = prev.Memory.Partitions > 0
		least = prev.Memory.Partitions
	}
	if c.policy.MaxReplicas != nil {
		least = min(least, *c.policy.MaxReplicas)
	}
	if partitions := max(prev.Memory.Partitions, next.Lag.PartitionCount()); partitions > 0 {
		least = min(least, partitions)
	}
	if !known || d.Replicas < least {
		w.fail("a fallback asks for what it says", "%s: %s gives %d, want at least %d", c.name, c.policy.Fallback.Behavior, d.Replicas, least)
	}
}

// ofNeed is steps 1, 2, 9 and 10 where nothing else takes part.
func (w *world) ofNeed(c *configured, prev, next *state.State, most int) {
	name, policy, d, lag := c.name, c.policy, next.Decision, &next.Lag
	before := 0
	if prev.Memory.Replicas != nil {
		before = *prev.Memory.Replicas
	}
	partitions := max(1, lag.PartitionCount())
	wakes := lag.Bootstrap || lag.Uncovered()
	for i := range lag.Partitions {
		s := lag.Partitions[i].Status
		wakes = wakes || s == changefeed.StatusSplitting || s == changefeed.StatusUncheckpointed
	}
	total := *lag.Lag() - shared(lag, policy.Threshold)
	active := total > policy.Activation || wakes
	need := 0
	if active {
		need = max(1, int((min(total, int64(partitions)*policy.Threshold)+policy.Threshold-1)/policy.Threshold))
	}
	need = max(min(need, most), policy.MinReplicas)
	plain := policy.Sizing == scaling.SizingThreshold && !policy.ExcludeStalled && !w.applies(c.account)
	if d.Active != active && !policy.ExcludeStalled {
		w.fail("a processor is active while its lag is above the activation threshold, or something wakes it", "%s: %t", name, d.Active)
	}
	switch {
	case plain && d.Replicas < need:
		w.fail("what is measured is asked for", "%s: lag %d of %d partitions gives %d, want at least %d", name, total, partitions, d.Replicas, need)
	case plain && d.Replicas > max(need, before, 1, policy.MinReplicas):
		w.fail("no more is asked for than is needed or was there", "%s: lag %d of %d partitions gives %d, want at most %d", name, total, partitions, d.Replicas, max(need, before))
	case d.Replicas > max(partitions, policy.MinReplicas):
		w.fail("no more replicas than partitions", "%s: %d for %d", name, d.Replicas, partitions)
	case d.Replicas == 0 && active:
		w.fail("an active processor has a replica", "%s", name)
	case d.Replicas == 0 && before > 0 && next.AttemptedAt.Sub(prev.Memory.LastActive) < policy.Cooldown && !prev.Memory.LastActive.IsZero():
		w.fail("zero comes after the cooldown", "%s: %s", name, next.AttemptedAt.Sub(prev.Memory.LastActive))
	}
}

// ofGroup: a group has what its members ask for most.
func (w *world) ofGroup(p *process, prev, next *state.State) {
	top, unknown, held := -1, false, true
	before := map[string]int{}
	for _, m := range prev.Members {
		if m.Replicas != nil {
			before[m.Processor] = *m.Replicas
		} else if m.Totals.Status == changefeed.StatusUnknown {
			held = false // what it asks for was not known, and the group stayed for that
		}
	}
	for _, m := range next.Members {
		c := w.find(m.Processor)
		last, known := before[m.Processor]
		if m.Replicas == nil {
			held = held && !known                                                      // the State of a paused one was lost: what it held is gone with it
			unknown = unknown || c == nil || !c.policy.Paused || p.unread[m.Processor] // a pause holds what cannot be read now
			continue
		}
		top = max(top, *m.Replicas)
		held = held && known && last == *m.Replicas
	}
	last := prev.Memory.Replicas
	if next.Decision == nil {
		if top > 0 {
			w.fail("a group whose members ask is decided", "%d", top)
		}
		return
	}
	if unknown && last != nil {
		top = max(top, *last)
	}
	if w.group.MaxReplicas != nil {
		top = min(top, *w.group.MaxReplicas)
	}
	top = max(top, w.group.MinReplicas)
	got := next.Decision.Replicas
	if got != top {
		w.fail("a group has the most that any of its members asks for", "%d, want %d", got, top)
	}
	if held && !unknown && len(prev.Members) == len(next.Members) && last != nil && got != *last && prev.Decision != nil {
		w.fail("a group stays while its members hold", "%d, %d before", got, *last)
	}
}

// applies reports whether the throughput of an account follows a processor, which may hold scale-out.
func (w *world) applies(a *account) bool {
	return slices.ContainsFunc(w.configured(), func(c *configured) bool { return c.account == a && c.mode == "apply" && !c.policy.Paused })
}

// provisioned is called for each throughput that is written.
func (w *world) provisioned(a *account, ru int) {
	if !w.applies(a) && ru != found {
		w.fail("throughput that is off, recommended or paused is given back and not written", "%s: %d RU/s", a.host, ru)
	}
	if ru < found || ru > mostRU || ru%100 != 0 {
		w.fail("throughput stays within its bounds", "%s: %d RU/s", a.host, ru)
	}
	if was := w.remembered()[a.host]; was != found {
		w.fail("what was found is remembered before it is changed", "%s: %d RU/s", a.host, was)
	}
	w.tell("throughput of %s: %d RU/s", a.host, ru)
}

// settled is how many ticks without a fault it takes until all is well again.
const settled = 2

// check is called behind each tick: what holds at every time, and what has to hold again once faults are
// over.
func (w *world) check() {
	for _, name := range sortedKeys(w.rows) {
		r := w.rows[name]
		if n := len(r.outbox); n > 8 {
			w.fail("an outbox does not grow", "%s: %d events", name, n)
		}
		if n := len(r.json); n > 64<<10 {
			w.fail("a State does not grow", "%s: %d bytes", name, n)
		}
	}
	if most := len(w.all) + 1; len(w.rows) > most {
		w.fail("there are as many rows as subjects", "%d", len(w.rows))
	}
	for subject, c := range w.consumers {
		if made := w.events[subject]; c.seen != "" && made[c.seen] == nil {
			w.fail("a consumer acts on what was committed", "%s: %s", subject, c.seen)
		}
	}
	if w.quiet < settled {
		return
	}
	for _, name := range sortedKeys(w.rows) {
		if n := len(w.rows[name].outbox); n > 0 && w.find(name) == nil && (name != groupName || len(w.members()) == 0) {
			w.fail("what a processor that was removed has left is published", "%s: %d events", name, n)
		}
	}
	for _, c := range w.configured() {
		if c.every == 0 || w.quiet > 2*settled {
			w.recovered(c.name, c)
		}
	}
	w.checkSignals()
	if len(w.members()) > 0 && !slices.ContainsFunc(w.members(), func(c *configured) bool { return c.every > 0 && w.quiet <= 2*settled }) {
		w.recovered(groupName, nil)
	}
	if w.tick < w.ticks-quietTicks+settled {
		return
	}
	for _, a := range w.accounts {
		if a.ru != found {
			w.fail("throughput that was found is back", "%s: %d RU/s", a.host, a.ru)
		}
	}
	if left := w.remembered(); len(left) > 0 {
		w.fail("throughput that is back is forgotten", "%v", left)
	}
}

// remembered is the throughput that is to be given back, by the host of its account.
func (w *world) remembered() map[string]int {
	all := map[string]int{}
	for _, d := range w.documents {
		var c state.Container
		if strings.HasPrefix(d.Name, state.ContainersPrefix) {
			if err := d.Decode(&c); err != nil {
				w.fail("what is remembered of throughput can be read", "%v", err)
			}
		}
		if c.Found > 0 {
			all[c.Account] = c.Found
		}
	}
	return all
}

// recovered: state, what was published and what the consumer has seen agree.
func (w *world) recovered(name string, c *configured) {
	r := w.rows[name]
	if r == nil {
		w.fail("all is well again after two ticks", "%s has no State", name)
		return
	}
	s := &r.last
	if len(r.outbox) > 0 {
		w.fail("all is well again after two ticks", "%s: %d events wait in the outbox", name, len(r.outbox))
	}
	if c != nil {
		if !s.Lag.Complete() {
			w.fail("all is well again after two ticks", "%s: %s", name, s.Lag.Problem())
		}
		if late := time.Since(s.AttemptedAt); late > max(c.every, interval)+interval || late < 0 {
			w.fail("all is well again after two ticks", "%s was polled %s ago", name, late)
		}
		if c.group != "" || c.policy.Paused {
			return
		}
	} else {
		top, paused := 0, true
		for _, m := range w.members() {
			paused = paused && m.policy.Paused
			if other := w.rows[m.name]; other != nil && other.last.Memory.Replicas != nil {
				top = max(top, *other.last.Memory.Replicas)
			}
		}
		if w.group.MaxReplicas != nil {
			top = min(top, *w.group.MaxReplicas)
		}
		if paused {
			return
		}
		if top = max(top, w.group.MinReplicas); s.Decision != nil && s.Decision.Replicas != top && len(w.processes) == 1 {
			w.fail("a group has the most that any of its members asks for", "%d, want %d", s.Decision.Replicas, top)
		}
	}
	if s.Decision == nil {
		w.fail("all is well again after two ticks", "%s: nothing is decided", name)
		return
	}
	if s.Published == nil || s.Published.Replicas != s.Decision.Replicas || s.Published.Active != s.Decision.Active {
		w.fail("what is decided is published", "%s", name)
		return
	}
	if since := time.Since(s.Published.Time); since > heartbeat+2*interval {
		w.fail("a decision is repeated at the heartbeat", "%s: published %s ago", name, since)
	}
	seen := w.consumers[name]
	if seen != nil && seen.seen < seen.lost {
		if w.quiet > int(heartbeat/interval)+2 {
			w.fail("a consumer that lost an event has it with the heartbeat", "%s", name)
		}
		return
	}
	if seen == nil || seen.seen != idOf(name, s.Epoch, s.Sequence) || seen.event.DesiredReplicas != s.Published.Replicas {
		w.fail("a consumer has seen what was published last", "%s: sequence %d", name, s.Sequence)
	}
}
