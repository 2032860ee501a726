package changefeedprocessor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// LeaseState is how far the processing of a lease is behind. A nil number is unknown, which is not zero.
type LeaseState struct {
	Lease       string // lease token
	Owner       string // "" if nobody owns the lease
	Lag         *int64 // pending transactions, at least 0
	Age         *int64 // seconds since the oldest pending change was written; nil if nothing is pending
	Approximate bool   // Lag is a bound or an estimate: during a split, or for a part of a range
	// Err is why Lag is nil or incomplete. It is [ErrUncheckpointed] for a lease without a continuation of a
	// processor that starts from now.
	Err error
}

// ErrUncheckpointed says that the position of a lease is in the memory of its owner alone.
var ErrUncheckpointed = errors.New("the lease has no checkpoint, and its processor starts from now")

// Estimate measures the lag of every lease of the processor, whichever hosts run: the numbers are those of
// feedscale's first poll (docs/lag.md). It writes nothing, and may be called while Run runs and without
// it. No lease at all gives no state: then no host has run yet. The error says that nothing could be
// measured, or why Run refuses these containers or leases; [LeaseState] has the errors of single leases.
//
// One request is made for each lease, besides those for the leases and the partition key ranges.
func (p *Processor) Estimate(ctx context.Context) ([]LeaseState, error) {
	var planned []*changefeed.LeasePlan
	h, err := p.open(ctx)
	if err == nil {
		planned, err = h.measure(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("changefeedprocessor: estimating %q on %s: %w", p.options.Name, p.monitored, err)
	}
	states := []LeaseState{}
	for _, l := range planned {
		if l.Leftover {
			continue
		}
		state := LeaseState{Lease: l.Token, Owner: l.Owner, Err: l.Err}
		if state.Err == nil && !l.Splitting && l.Uncheckpointed(h.leases.Start) {
			state.Err = ErrUncheckpointed
		} else if r := l.Reading(); r != nil {
			state.Lag, state.Age, state.Approximate = &r.Lag, r.Age, r.Approximate
		}
		states = append(states, state)
	}
	return states, nil
}

// measure reads the leases and what is pending for each.
func (h *host) measure(ctx context.Context) ([]*changefeed.LeasePlan, error) {
	prefix := h.leases.Prefix + ".."
	texts, err := h.leases.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	documents := make([]changefeed.LeaseDocument, len(texts))
	for i, text := range texts {
		documents[i].Lease, documents[i].Err = changefeed.ParseLease(text)
	}
	selected, err := changefeed.Sorted(documents, time.Now()).Select([]string{prefix}, changefeed.FamilyAny)
	if err != nil || len(selected) == 0 {
		return nil, err
	}
	ranges, err := h.feed.ranges(ctx, true)
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	planned := changefeed.Plan(selected, ranges)
	for _, l := range planned {
		l.Readings, l.Errs = make([]changefeed.Reading, len(l.Shares)), make([]error, len(l.Shares))
		for i := range l.Shares {
			h.pages <- struct{}{}
			reading.Go(func() {
				defer func() { <-h.pages }()
				l.Readings[i], l.Errs[i] = changefeed.ReadOn(l.Position(l.Shares[i], h.leases.Start), func(at changefeed.Position) (changefeed.Answer, error) {
					return h.feed.answer(ctx, at)
				})
			})
		}
	}
	reading.Wait()
	changefeed.Settle(planned)
	return planned, nil
}

// answer reads a page of one change at most, as pkg/changefeed has it.
func (f *feed) answer(ctx context.Context, at changefeed.Position) (changefeed.Answer, error) {
	page, err := f.read(ctx, at, 1)
	if status, sub := statusOf(err); changefeed.OutcomeOf(status, sub) == changefeed.Gone {
		return changefeed.Answer{Status: status, Substatus: sub}, nil
	}
	if err != nil {
		return changefeed.Answer{}, err
	}
	a := changefeed.AnswerOf(page.RawResponse.StatusCode, page.RawResponse.Header.Get)
	if a.Status != http.StatusOK {
		return a, nil
	}
	body, err := runtime.Payload(page.RawResponse)
	if err == nil {
		a.Page, err = changefeed.ReadPage(bytes.NewReader(body), at.Mode)
	}
	return a, err
}
