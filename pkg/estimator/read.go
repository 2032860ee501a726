package estimator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// page is the result of reading one position of a change feed: a reading or an error.
type page struct {
	position  changefeed.Position
	chargedTo *measurement // the processor whose container is read, and that the request is charged to
	usage     cosmos.Usage
	reading   changefeed.Reading
	charge    float64        // request units of the read that the reading is from
	leftOut   bool           // by the RU budget
	err       error          // changefeed.ErrMoved if its range is gone
	done      sync.WaitGroup // until the result is known

	measured     time.Time             // when the lease was measured before; zero = never
	last         *changefeed.Partition // what the last tick measured at this very position; else nil
	containerRID string                // of the container that answered; "" if it did not say
}

// readFeeds reads the pages of every lease, unless they were read in this tick already.
func (t *tick) readFeeds(ctx context.Context, processors []*measurement) {
	t.refreshRanges(ctx, those(processors, func(m *measurement) bool { // EPK leases are read by them
		return m.ranges.known() == nil && slices.ContainsFunc(m.leases, func(l measuredLease) bool { return l.Range != nil })
	}))
	t.readShares(ctx, processors, false)
}

// readShares reads what the leases cover, by the partition key ranges as they are now or as they were known last.
func (t *tick) readShares(ctx context.Context, processors []*measurement, now bool) {
	var planned []*page
	for _, m := range those(processors, nil) {
		changefeed.Locate(m.planned(), m.ranges.known(), now)
		for i := range m.leases {
			planned = append(planned, t.plan(m, &m.leases[i])...)
		}
	}
	t.readPlanned(ctx, processors, planned)
}

// plan plans a page for each share of a lease, and returns those that no other lease has planned. A page is
// charged to the processor that asks first.
func (t *tick) plan(m *measurement, l *measuredLease) (planned []*page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, last := m.source(), m.last[l.Token]
	pages, shared := t.reads[s], t.users[s] > 1
	if pages == nil && shared {
		pages = make(map[changefeed.Position]*page, len(m.leases))
		t.reads[s] = pages
	}
	l.pages = nil
	for _, share := range l.Shares {
		position := l.Position(share, m.processor.StartFrom)
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
func (t *tick) readPlanned(ctx context.Context, processors []*measurement, planned []*page) {
	ctx, cancel := withShare(ctx, feedsShare)
	defer cancel()
	if len(planned) > 0 {
		turn := t.turn % len(planned)
		planned = slices.Concat(planned[turn:], planned[:turn])
	}
	slices.SortStableFunc(planned, func(a, b *page) int { return a.measured.Compare(b.measured) })
	t.parallel(len(planned), func(i int) {
		p := planned[i]
		p.fetch(p.chargedTo.processor.Account.Budget.Turn(ctx, t.budgetUntil, p.measured))
		p.done.Done()
	})
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

// dearPage is the charge in request units from which on it pays to ask first whether anything has
// changed, for one request unit.
const dearPage = 4

// gone reports whether the range of the page was split or merged.
func (p *page) gone() bool { return errors.Is(p.err, changefeed.ErrMoved) }

// fetch reads the page, and reads on after an empty one: only a 304 says that nothing follows.
func (p *page) fetch(ctx context.Context) {
	if p.last != nil && p.last.Unchanged && p.last.ReadCharge >= dearPage && p.stillUnchanged(ctx) {
		p.reading, p.charge = p.chargedTo.again(p.last), p.last.ReadCharge
		return
	}
	s := p.chargedTo.source()
	reading, err := changefeed.ReadOn(p.position, func(position changefeed.Position) (changefeed.Answer, error) {
		answer, usage, err := s.account.FeedPage(ctx, s.container, position)
		p.usage.Add(usage)
		p.containerRID = cmp.Or(answer.ContainerRID, p.containerRID)
		return answer, err
	})
	if p.leftOut = errors.Is(err, cosmos.ErrBudget); !p.leftOut {
		p.err = err
	}
	p.reading, p.charge = reading, p.usage.Charge
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
