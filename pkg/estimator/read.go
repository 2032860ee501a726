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

// page is what a read brought: a reading, a range that is gone, or an error.
type page struct {
	read    read
	payer   *measured // whose the request is counted as
	usage   cosmos.Usage
	reading changefeed.Reading
	gone    bool
	err     error

	containerRID string // of the container that answered; "" where it did not say
}

// readFeeds reads the pages of every lease of the processors that has a
// position, unless they were read in this tick already.
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
	t.readWanted(ctx)
}

// route asks for the pages of a lease. A PK-range lease names its range. An EPK
// lease is read in the ranges that have its keys: with its own range's id where
// the bounds are the same, a part of a range where it is narrower, and every
// range where it is wider, which then was split.
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
		t.want(m, l, r, l.Range.Clip(r.Span()))
	}
}

// want asks for the page of a part of a range, which may be all of it.
func (t *tick) want(m *measured, l *measuredLease, r changefeed.PartitionKeyRange, part changefeed.Range) {
	if part.Equal(r.Span()) {
		part = changefeed.Range{}
	}
	l.pages = append(l.pages, t.page(m, m.read(l, r.ID, part)))
}

// page returns the page of a read, which is asked for at the cost of the
// processor that asks first.
func (t *tick) page(m *measured, r read) *page {
	if t.reads[r] == nil {
		p := &page{read: r, payer: m}
		t.reads[r] = p
		t.wanted = append(t.wanted, p)
	}
	return t.reads[r]
}

// readWanted does the reads that were asked for since it was called last.
func (t *tick) readWanted(ctx context.Context) {
	ctx, cancel := part(ctx, partOfFeeds)
	defer cancel()
	wanted := t.wanted
	t.wanted = nil
	t.each(len(wanted), func(i int) *cosmos.Account { return wanted[i].read.source.account }, func(i int) {
		wanted[i].fetch(ctx)
	})
	for _, p := range wanted {
		p.payer.usage.Add(p.usage)
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
