package estimator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	charge    float64 // request units of the read that the reading is from
	gone      bool
	leftOut   bool // by the RU budget
	unchanged bool // nothing has changed since the last tick, so that the reading is that of it
	err       error
	done      sync.WaitGroup // until the result is known

	measured     time.Time             // when the lease was measured before; zero = never
	last         *changefeed.Partition // what the last tick measured at this very position; else nil
	containerRID string                // of the container that answered; "" if it did not say
}

// readFeeds reads the pages of every lease, unless they were read in this tick already.
func (t *tick) readFeeds(ctx context.Context, processors []*measured) {
	t.needRanges(ctx, processors)
	var planned []*page
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		changefeed.MarkLeftovers(m.planned(), m.ranges.known())
		for i := range m.leases {
			if l := &m.leases[i]; !l.Leftover && l.Err == nil {
				planned = append(planned, t.route(m, l)...)
			}
		}
	}
	t.readPlanned(ctx, processors, planned)
}

// route plans the pages of a lease. A PK-range lease names its range. An EPK lease is read by range id if a
// range has the same bounds, by a part of the range if it is narrower, and in each of several ranges if it
// is wider, since its range was split. The .NET SDK routes alike (RequestInvokerHandler.cs).
func (t *tick) route(m *measured, l *measuredLease) []*page {
	shares, exists := []changefeed.Share{{Of: changefeed.PartitionKeyRange{ID: l.Token}}}, true
	if l.Range != nil {
		shares, exists = m.ranges.known().Shares(&l.Lease)
	}
	if len(shares) == 0 {
		l.Err = fmt.Errorf("no partition key range of container %s has keys from %q to %q", m.processor.Container, l.Range.Min, l.Range.Max)
		return nil
	}
	l.Shares, l.Splitting = shares, !exists
	return t.plan(m, l)
}

// plan plans a page for each share of a lease, and returns those that no other lease has planned. A page is
// charged to the processor that asks first.
func (t *tick) plan(m *measured, l *measuredLease) (planned []*page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, last := m.source(), m.before(l)
	pages, shared := t.reads[s], t.users[s] > 1
	if pages == nil && shared {
		pages = make(map[cosmos.Position]*page, len(m.leases))
		t.reads[s] = pages
	}
	l.pages = nil
	for _, share := range l.Shares {
		position := cosmos.Position{Mode: l.Mode, Range: share.Of.ID, Part: share.Part()}
		position.Continuation, position.Since = l.From(m.processor.StartFrom)
		p := pages[position]
		if p == nil {
			p = &page{position: position, chargedTo: m}
			p.done.Add(1)
			planned = append(planned, p)
			if shared {
				pages[position] = p
			}
			if last != nil && last.Known() {
				p.measured = cmp.Or(last.Measured, m.lastLag.Time)
				stands := !l.Splitting && last.Ranges < 2 && last.Position == l.Continuation && position.Continuation == l.Continuation
				// The lag of a part depends on those of the other parts.
				if stands && position.Part == (changefeed.Range{}) && last.SessionLSN != nil && !last.Carried() {
					p.last = last
				}
			}
		}
		l.pages = append(l.pages, p)
	}
	return planned
}

// readPlanned reads pages, those first whose leases were measured the longest ago, so that a budget
// leaves out each in turn. Unknown leases begin at another one in each tick: if none answers, only the
// first is asked (docs/decisions/0007). It waits for pages that other processors planned as well.
//
// The newest LSN of a range is the same from whatever position it is read. So of several positions
// of a range one is read first. Another one is not read if neither it nor the newest LSN of the range has
// moved since the last tick (docs/decisions/0008).
func (t *tick) readPlanned(ctx context.Context, processors []*measured, planned []*page) {
	ctx, cancel := withShare(ctx, feedsShare)
	defer cancel()
	if len(planned) > 0 {
		turn := t.turn % len(planned)
		planned = slices.Concat(planned[turn:], planned[:turn])
	}
	slices.SortStableFunc(planned, func(a, b *page) int { return a.measured.Compare(b.measured) })
	first, rest := leaders(planned)
	t.fetchAll(ctx, first)
	newest := make(map[string]int64)
	for _, p := range first {
		if lsn := p.reading.SessionLSN; lsn != nil {
			newest[p.position.Range] = *lsn
		}
	}
	t.fetchAll(ctx, slices.DeleteFunc(rest, func(p *page) bool {
		lsn, known := newest[p.position.Range]
		stands := known && p.last != nil && *p.last.SessionLSN == lsn
		if stands {
			p.repeat()
			p.done.Done()
		}
		return stands
	}))
	for _, p := range planned {
		p.chargedTo.usage.Add(p.usage)
	}
	for _, m := range processors {
		for i := range m.leases {
			for _, p := range m.leases[i].pages {
				p.done.Wait()
			}
		}
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
	t.parallel(len(pages), func(i int) {
		p := pages[i]
		p.fetch(p.chargedTo.processor.Account.BudgetTurn(ctx, t.budgetUntil, p.measured))
		p.done.Done()
	})
}

// repeat takes over the reading of the last tick.
func (p *page) repeat() {
	p.unchanged, p.reading, p.charge = true, p.chargedTo.again(p.last), p.last.ReadCharge
}

// dearPage is the charge in request units from which on it pays to ask first whether anything has
// changed, for one request unit.
const dearPage = 4

// fetch reads the page, and reads on after an empty one: only a 304 says that nothing follows.
func (p *page) fetch(ctx context.Context) {
	if p.last != nil && p.last.Unchanged && p.last.ReadCharge >= dearPage && p.stillUnchanged(ctx) {
		p.repeat()
		return
	}
	s, position := p.chargedTo.source(), p.position
	reading, gone, err := changefeed.ReadOn(position.Continuation, func(continuation string) (changefeed.Answer, error) {
		position.Continuation = continuation
		answer, usage, err := s.account.FeedPage(ctx, s.container, position)
		p.usage.Add(usage)
		p.containerRID = cmp.Or(answer.ContainerRID, p.containerRID)
		return answer, err
	})
	if p.leftOut = errors.Is(err, cosmos.ErrBudget); !p.leftOut {
		p.err = err
	}
	p.reading, p.gone, p.charge = reading, gone, p.usage.Charge
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
	p.containerRID = answer.ContainerRID
	lsn, ok := changefeed.SessionLSN(answer.SessionToken)
	return ok && lsn == *p.last.SessionLSN
}
