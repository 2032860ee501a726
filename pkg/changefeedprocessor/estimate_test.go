package changefeedprocessor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// estimate holds that Estimate gives what feedscale's first poll gives, and returns it.
func (s *shop) estimate(change func(*changefeedprocessor.Options), from changefeed.StartFrom) []changefeedprocessor.LeaseState {
	s.t.Helper()
	monitored, leases, o := s.options("nobody", s.Line())
	if change != nil {
		change(&o)
	}
	p, err := changefeedprocessor.New(monitored, leases, o)
	testworld.Must(s.t, err)
	began := time.Now()
	got, err := p.Estimate(s.t.Context())
	testworld.Must(s.t, err)
	w := watch(s)
	w.processor.StartFrom = from
	want := w.estimator.EstimateAll(s.t.Context(), []estimator.Processor{w.processor})[0]
	if want.Error != "" || len(got) != len(want.Partitions) {
		s.t.Fatalf("got %d leases, want %d: %s", len(got), len(want.Partitions), want.Error)
	}
	passed := 1 + int64(time.Since(began)/time.Second) // whole seconds: the ages were read one after the other
	for i, w := range want.Partitions {
		g := got[i]
		if w.Status == changefeed.StatusUncheckpointed { // needs history
			if g.Lag != nil || !errors.Is(g.Err, changefeedprocessor.ErrUncheckpointed) {
				s.t.Errorf("lease %s: got %s, %v, want no lag", w.Lease, number(g.Lag), g.Err)
			}
			continue
		}
		if g.Lease != w.Lease || g.Owner != w.Owner || number(g.Lag) != number(w.Lag) || differ(g.Age, w.Age, passed) || g.Approximate != w.Approximate || (g.Err == nil) != (w.Error == "") {
			s.t.Errorf("got lease %s of %q: %s, %s s, approximate %v, %v; want %s of %q: %s, %s s, approximate %v, %s", g.Lease, g.Owner, number(g.Lag), number(g.Age), g.Approximate, g.Err, w.Lease, w.Owner, number(w.Lag), number(w.Age), w.Approximate, w.Error)
		}
	}
	return got
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// differ reports whether two ages differ by more than the seconds that passed between them.
func differ(a, b *int64, passed int64) bool {
	return (a == nil) != (b == nil) || a != nil && max(*a-*b, *b-*a) > passed
}

func TestAnEstimateIsThatOfTheFirstPoll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 31))
			s := newShop(t, 3)
			s.write(30)
			of := s.LeasesOf("projection", "127.0.0.1", "orders")
			w := watch(s)
			java, epk := random.IntN(3) == 0, random.IntN(2) == 0
			for _, id := range []string{"0", "1", "2"} {
				span := leasefake.Range(w.span(id))
				f := leasefake.Fields{Owner: fmt.Sprint("host-", random.IntN(2)), Updated: time.Now()}
				if random.IntN(4) > 0 {
					f.Continuation = leasefake.At(random.Int64N(12))
				}
				switch {
				case java && epk:
					s.Put(testworld.Leases, of.JavaEPK(span, leasefake.FromBeginning(), f))
				case java:
					s.Put(testworld.Leases, of.JavaPK(id, f))
				case epk:
					s.Put(testworld.Leases, of.DotNetEPK(span, f))
				default:
					s.Put(testworld.Leases, of.DotNetPK(id, span, f))
				}
			}
			from := changefeed.StartFrom{Beginning: true}
			s.estimate(nil, from)
			children := s.split("1")
			s.write(20)
			s.estimate(nil, from)
			s.merge("0", children[0])
			s.write(20)
			s.estimate(nil, from)
			if !java && !epk { // a host was about to replace the lease
				s.Put(testworld.Leases, of.DotNetPK(children[1], leasefake.Range(watch(s).span(children[1])), leasefake.Fields{Continuation: leasefake.At(15), Updated: time.Now()}))
				s.estimate(nil, from)
			}
			s.estimate(func(o *changefeedprocessor.Options) { o.FromBeginning = false }, changefeed.StartFrom{})
		})
	}
}

// TestAnEstimateWhereASplitGoesOnIsThatOfTheFirstPoll has a lease whose range was split, and one of the
// ranges that replaced it be split in turn.
func TestAnEstimateWhereASplitGoesOnIsThatOfTheFirstPoll(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	of := s.LeasesOf("projection", "127.0.0.1", "orders")
	s.Put(testworld.Leases, of.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{Owner: "host", Continuation: leasefake.At(0), Updated: time.Now()}))
	s.write(30)
	children := s.split("0")
	s.write(30)
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadChangeFeed && r.RangeID == children[0] {
			return &cosmosfake.Answer{Status: http.StatusGone, Substatus: 1002}
		}
		return nil
	})
	if got := s.estimate(nil, changefeed.StartFrom{}); len(got) != 1 || number(got[0].Lag) != "1" {
		t.Errorf("got %+v, want a lag of 1", got)
	}
}

func TestAnEstimateOfLeasesOfTwoSDKsIsAnError(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	of := s.LeasesOf("projection", "127.0.0.1", "orders")
	f := leasefake.Fields{Owner: "host", Updated: time.Now()}
	s.Put(testworld.Leases, of.DotNetPK("0", leasefake.Range{Max: "FF"}, f), of.JavaPK("0", f))
	monitored, leases, o := s.options("nobody", s.Line())
	p, err := changefeedprocessor.New(monitored, leases, o)
	testworld.Must(t, err)
	if states, err := p.Estimate(t.Context()); err == nil || !strings.Contains(err.Error(), "leases of this processor in 2 formats") {
		t.Errorf("got %v, %v, want an error that says so", states, err)
	}
}

func TestAProcessorThatNeverRanHasNoStates(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	monitored, leases, o := s.options("nobody", s.Line())
	p, err := changefeedprocessor.New(monitored, leases, o)
	testworld.Must(t, err)
	if states, err := p.Estimate(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("got %v, %v, want none", states, err)
	}
	if n := len(s.documents()); n != 0 {
		t.Errorf("%d documents were written", n)
	}
}
