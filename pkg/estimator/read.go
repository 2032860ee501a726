package estimator

import (
	"context"
	"fmt"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// read is one position of a change feed.
type read struct {
	source   source
	position cosmos.Position
}

// page is the result of a read: a reading, a range that is gone, or an error.
type page struct {
	read      read
	chargedTo *measured // the processor that the request is charged to
	usage     cosmos.Usage
	reading   changefeed.Reading
	gone      bool
	err       error

	containerRID string // of the container that answered; "" where it did not say
}

// readFeeds reads the pages of every lease that has a position, unless they were read in this tick
// already.
func (t *tick) readFeeds(ctx context.Context, processors []*measured) {
	t.needRanges(ctx, processors)
	for _, m := range processors {
		if m.err != nil {
			continue
		}
		m.dropDuplicates(t.rangesOf(m))
		for i := range m.leases {
			if l := &m.leases[i]; !l.leftover && !m.unreadable(l) {
				t.route(m, l)
			}
		}
	}
	t.readPlanned(ctx)
}

// route plans the pages of a lease. A PK-range lease names its range. An EPK lease is read in the
// ranges that overlap its bounds: by range id alone where one range has the same bounds, by a part
// of the range where the lease is narrower, and in each of several ranges where it is wider, which
// means that its range was split. The .NET SDK routes alike, and answers the last case itself with
// 410/1002 (azure-cosmos-dotnet-v3, RequestInvokerHandler.cs).
func (t *tick) route(m *measured, l *measuredLease) {
	if l.Range == nil {
		l.pages = []*page{t.page(m, m.read(l, l.Token, changefeed.Range{}))}
		return
	}
	overlapping := t.rangesOf(m).Overlapping(*l.Range)
	if len(overlapping) == 0 {
		l.Err = fmt.Errorf("no partition key range of container %s has keys from %q to %q", m.processor.Container, l.Range.Min, l.Range.Max)
		return
	}
	l.pages, l.splitting = nil, len(overlapping) > 1
	for _, r := range overlapping {
		t.plan(m, l, r, l.Range.Clip(r.Span()))
	}
}

// plan adds the page of a part of a range, which may be all of it.
func (t *tick) plan(m *measured, l *measuredLease, r changefeed.PartitionKeyRange, part changefeed.Range) {
	if part.Equal(r.Span()) {
		part = changefeed.Range{}
	}
	l.pages = append(l.pages, t.page(m, m.read(l, r.ID, part)))
}

// page returns the page of a read. It is planned once, and charged to the processor that asks
// first.
func (t *tick) page(m *measured, r read) *page {
	if t.reads[r] == nil {
		p := &page{read: r, chargedTo: m}
		t.reads[r] = p
		t.planned = append(t.planned, p)
	}
	return t.reads[r]
}

// readPlanned reads the pages that were planned since it was called last.
func (t *tick) readPlanned(ctx context.Context) {
	ctx, cancel := withShare(ctx, feedsShare)
	defer cancel()
	planned := t.planned
	t.planned = nil
	t.each(len(planned), func(i int) *cosmos.Account { return planned[i].read.source.account }, func(i int) {
		planned[i].fetch(ctx)
	})
	for _, p := range planned {
		p.chargedTo.usage.Add(p.usage)
	}
}

func (p *page) fetch(ctx context.Context) {
	var answer changefeed.Answer
	answer, p.usage, p.err = p.read.source.account.FeedPage(ctx, p.read.source.container, p.read.position)
	p.containerRID = answer.ContainerRID
	switch {
	case p.err != nil:
	case changefeed.OutcomeOf(answer.Status, answer.Substatus) == changefeed.Gone:
		p.gone = true
	default:
		p.reading, p.err = changefeed.Measure(answer, p.read.position.Mode)
	}
}
