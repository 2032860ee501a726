package estimator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// page is the result of reading one position of a change feed: a reading, a range that is gone, or
// an error.
type page struct {
	position  cosmos.Position
	chargedTo *measured // the processor whose container is read, and that the request is charged to
	usage     cosmos.Usage
	reading   changefeed.Reading
	gone      bool
	leftOut   bool // by the RU budget
	repeats   bool // before was measured at this very position
	err       error
	ready     chan struct{} // closed when the result is known; nil if no other processor waits for it

	before       *changefeed.Partition // what the last tick knew of the lease; nil if it knew nothing
	unchanged    *changefeed.Partition // before, if nothing has changed since and nothing was read; else nil
	containerRID string                // of the container that answered; "" if it did not say
}

// last returns what the last tick measured at this very position, else nil.
func (p *page) last() *changefeed.Partition {
	if !p.repeats {
		return nil
	}
	return p.before
}

// measured returns when the lease was measured last; zero = never.
func (p *page) measured() time.Time {
	switch {
	case p.before == nil:
		return time.Time{}
	case p.before.Measured.IsZero():
		return p.chargedTo.lastLag.Time
	default:
		return p.before.Measured
	}
}

// done lets go the processors that wait for the page.
func (p *page) done() {
	if p.ready != nil {
		close(p.ready)
	}
}

// readFeeds reads the pages of every lease, unless they were read in this tick already.
func (t *tick) readFeeds(ctx context.Context, processors []*measured) {
	t.needRanges(ctx, processors)
	var planned []*page
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		changefeed.MarkLeftovers(m.planned(), t.rangesOf(m))
		for i := range m.leases {
			if l := &m.leases[i]; !l.Leftover && l.Err == nil {
				planned = append(planned, t.route(m, l)...)
			}
		}
	}
	t.readPlanned(ctx, processors, planned)
}

// route plans the pages of a lease, and returns those that no other lease has planned. A PK-range
// lease names its range. An EPK lease is read in the ranges that overlap its bounds: by range id
// alone if one range has the same bounds, by a part of the range if the lease is narrower, and in
// each of several ranges if it is wider, which means that its range was split. The .NET SDK routes
// alike, and answers the last case itself with 410/1002 (azure-cosmos-dotnet-v3,
// RequestInvokerHandler.cs).
func (t *tick) route(m *measured, l *measuredLease) []*page {
	if l.Range == nil {
		l.pages = nil
		return t.plan(nil, m, l, m.position(l, l.Token, changefeed.Range{}))
	}
	shares, exists := t.rangesOf(m).Shares(&l.Lease)
	if len(shares) == 0 {
		l.Err = fmt.Errorf("no partition key range of container %s has keys from %q to %q", m.processor.Container, l.Range.Min, l.Range.Max)
		return nil
	}
	l.pages, l.Shares, l.Splitting = nil, shares, !exists
	var planned []*page
	for _, s := range shares {
		planned = t.plan(planned, m, l, m.position(l, s.Of.ID, s.Part()))
	}
	return planned
}

// plan adds the page of a position to a lease, and to those planned unless another one has planned it. It
// is charged to the processor that asks first.
func (t *tick) plan(planned []*page, m *measured, l *measuredLease, position cosmos.Position) []*page {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := m.source()
	pages, shared := t.reads[s], t.users[s] > 1
	if pages == nil && shared {
		pages = make(map[cosmos.Position]*page, len(m.leases))
		t.reads[s] = pages
	}
	p := pages[position]
	if p == nil {
		p = &page{position: position, chargedTo: m}
		if shared {
			p.ready = make(chan struct{})
			pages[position] = p
		}
		planned = append(planned, p)
		if last := m.before(l); last != nil && last.Known() {
			p.before = last
			whole := position.Part == (changefeed.Range{}) // the lag of a part depends on those of the other parts
			p.repeats = whole && !l.Splitting && last.Position == l.Continuation && position.Continuation == l.Continuation && last.SessionLSN != nil && !last.Carried() && last.Ranges < 2
		}
	}
	l.pages = append(l.pages, p)
	return planned
}

// readPlanned reads pages, those first whose leases were measured the longest ago, so that a budget
// leaves out each in turn. It returns when all pages of the processors are read, also those that
// others planned.
//
// The newest LSN of a range is the same from whatever position it is read. So of several positions
// of a range one is read first. Another one has the same lag as in the last tick and is not read if
// neither it nor the newest LSN of the range has moved since (docs/decisions/0008).
func (t *tick) readPlanned(ctx context.Context, processors []*measured, planned []*page) {
	ctx, cancel := withShare(ctx, feedsShare)
	defer cancel()
	slices.SortStableFunc(planned, func(a, b *page) int { return a.measured().Compare(b.measured()) })
	rotate(planned, t.turn)
	first, rest := leaders(planned)
	newest := make(map[string]int64)
	t.fetchAll(ctx, first)
	for _, p := range first {
		switch {
		case p.unchanged != nil:
			newest[p.position.Range] = *p.unchanged.SessionLSN
		case p.err == nil && !p.gone && !p.leftOut && p.reading.SessionLSN != nil:
			newest[p.position.Range] = *p.reading.SessionLSN
		}
	}
	var needed []*page
	for _, p := range rest {
		lsn, known := newest[p.position.Range]
		if last := p.last(); known && last != nil && *last.SessionLSN == lsn {
			p.unchanged = last
			p.done()
			continue
		}
		needed = append(needed, p)
	}
	t.fetchAll(ctx, needed)
	for _, p := range planned {
		p.chargedTo.usage.Add(p.usage)
	}
	for _, m := range processors {
		for i := range m.leases {
			for _, p := range m.leases[i].pages {
				if p.ready != nil {
					<-p.ready
				}
			}
		}
	}
}

// rotate begins the pages of unknown leases at another one in each tick. If none answers, only the
// first is asked (docs/decisions/0007), and it should not be the same one each time.
func rotate(planned []*page, turn int) {
	unknown := slices.IndexFunc(planned, func(p *page) bool { return !p.measured().IsZero() })
	if unknown < 0 {
		unknown = len(planned)
	}
	if unknown > 1 {
		first := turn % unknown
		copy(planned, slices.Concat(planned[first:unknown], planned[:first]))
	}
}

// leaders divides pages into the first of each range and the rest.
func leaders(planned []*page) (first, rest []*page) {
	seen := make(map[string]bool, len(planned))
	for _, p := range planned {
		whole := p.position.Part == (changefeed.Range{}) && p.position.Mode == changefeed.Incremental
		if whole && seen[p.position.Range] {
			rest = append(rest, p)
			continue
		}
		seen[p.position.Range] = whole
		first = append(first, p)
	}
	return first, rest
}

func (t *tick) fetchAll(ctx context.Context, pages []*page) {
	if len(pages) == 0 {
		return
	}
	t.parallel(len(pages), func(i int) {
		pages[i].fetch(cosmos.LastMeasured(ctx, pages[i].measured()))
		pages[i].done()
	})
}

// dearPage is the charge in request units from which on it pays to ask first whether anything has
// changed, for one request unit.
const dearPage = 4

// fetch reads the page, and reads on after an empty one: only a 304 says that nothing follows.
func (p *page) fetch(ctx context.Context) {
	if last := p.last(); last != nil && last.Unchanged && last.ReadCharge >= dearPage && p.stillUnchanged(ctx) {
		return
	}
	s, position := p.chargedTo.source(), p.position
	reading, gone, err := changefeed.ReadOn(position.Continuation, func(continuation string) (changefeed.Answer, error) {
		position.Continuation = continuation
		answer, usage, err := s.account.FeedPage(ctx, s.container, position)
		p.usage.Add(usage)
		if answer.ContainerRID != "" {
			p.containerRID = answer.ContainerRID
		}
		return answer, err
	})
	switch {
	case errors.Is(err, cosmos.ErrBudget):
		p.leftOut = true
	case err != nil:
		p.err = err
	default:
		p.reading, p.gone = reading, gone
	}
}

// stillUnchanged asks for the newest LSN alone, for one request unit and without a document. If it
// is that of the last tick, so is the lag.
func (p *page) stillUnchanged(ctx context.Context) bool {
	s, position := p.chargedTo.source(), p.position
	position.Continuation, position.Since = changefeed.FromNow, time.Time{}
	answer, usage, err := s.account.FeedPage(ctx, s.container, position)
	p.usage.Add(usage)
	if err != nil || changefeed.OutcomeOf(answer.Status, answer.Substatus) != changefeed.Answered {
		return false // reading the page says why
	}
	lsn, ok := changefeed.SessionLSN(answer.SessionToken)
	if !ok || lsn != *p.before.SessionLSN {
		return false
	}
	p.containerRID, p.unchanged = answer.ContainerRID, p.before
	return true
}
