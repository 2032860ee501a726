package estimator_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// emptyPages makes the stand-in answer the first n reads of the change feed with empty pages, beyond
// those that it begins with itself.
func (w *world) emptyPages(n int) {
	w.Account.Control(cosmosfake.Times(n, cosmosfake.ReadChangeFeed, cosmosfake.Answer{EmptyPage: true}))
}

// TestAnEmptyPageIsNoZero reads on where a page is empty, since only a 304 says that nothing follows:
// the service's first answer to a start time is empty (azure-cosmos-dotnet-v3#755), and any page of a
// part of a range, or of all versions, may be. Behind a few of them something counts as pending.
func TestAnEmptyPageIsNoZero(t *testing.T) {
	t.Parallel()
	past := changefeed.StartFrom{Time: time.Now().Add(-time.Hour)}
	whole := changefeed.Range{Min: "", Max: "FF"}
	for _, read := range []struct {
		kind  string
		begin int // empty pages that the service itself begins with
		start changefeed.StartFrom
		lease func(w *world, p estimator.Processor, at *string)
		token string
		part  bool
	}{
		{"from a position", 0, changefeed.StartFrom{}, func(w *world, p estimator.Processor, at *string) {
			w.put(w.leasesOf(p).DotNetPKOld("0", leasefake.Fields{Continuation: at}))
		}, "0", false},
		{"from a start time", 1, past, func(w *world, p estimator.Processor, _ *string) {
			w.put(w.leasesOf(p).DotNetPKOld("0", leasefake.Fields{}))
		}, "0", false},
		{"of a part of a range", 0, changefeed.StartFrom{}, func(w *world, p estimator.Processor, at *string) {
			w.epk(p, changefeed.Range{Min: "", Max: "3F"}, leasefake.Fields{Continuation: at})
		}, "-3F", true},
		{"of a part of a range, from a start time", 1, past, func(w *world, p estimator.Processor, _ *string) {
			w.epk(p, changefeed.Range{Min: "", Max: "3F"}, leasefake.Fields{})
		}, "-3F", true},
		{"of all versions", 0, changefeed.StartFrom{}, func(w *world, p estimator.Processor, at *string) {
			w.epk(p, whole, leasefake.Fields{Continuation: at, Mode: leasefake.FullFidelity})
		}, "-FF", false},
		{"of Java, from a start time", 1, changefeed.StartFrom{}, func(w *world, p estimator.Processor, _ *string) {
			w.put(w.leasesOf(p).JavaEPKUnread(leasefake.Range(whole), leasefake.FromTime(past.Time), leasefake.Fields{}))
		}, "-FF", false},
	} {
		for pending := range 2 {
			for empty := range 7 {
				t.Run(fmt.Sprintf("%s, %d pending behind %d more empty pages", read.kind, 3*pending, empty), func(t *testing.T) {
					t.Parallel()
					w := newWorldOf(t, cosmosfake.Options{VersionRetention: time.Hour})
					w.Container("orders", 1)
					w.Write("orders", 4)
					p := w.processor("orders")
					p.StartFrom = read.start
					at := leasefake.At(1)
					if pending == 0 {
						at = leasefake.At(4)
						if read.begin > 0 {
							p.StartFrom = changefeed.StartFrom{Time: time.Now().Add(time.Hour)}
						}
					}
					read.lease(w, p, at)
					if pending == 0 && read.kind == "of Java, from a start time" {
						w.put(w.leasesOf(p).JavaEPKUnread(leasefake.Range(whole), leasefake.FromTime(p.StartFrom.Time), leasefake.Fields{}))
					}
					w.emptyPages(empty)
					l := w.estimate(p)[0]
					got := l.Partitions[0]
					lag, approximate := int64(0), false
					switch {
					// A 304 is a 304, however the next page would have been: where nothing is pending, only
					// the service's own empty page comes before it.
					case pending == 0:
					case max(read.begin, empty) >= 4:
						lag, approximate = 1, true
					case read.begin > 0:
						lag, approximate = 4, read.part
					default:
						lag, approximate = 3, read.part
					}
					if got.Lease != read.token || *got.Lag != lag || got.Approximate != approximate {
						t.Errorf("got %s, want %d, approximate: %v", describe(l), lag, approximate)
					}
				})
			}
		}
	}
}

// TestAStartTimeIsSentTogetherWithAToken has the lease of Java's processor, which keeps both, since a
// range that was merged needs both (azure-sdk-for-java#48752).
func TestAStartTimeIsSentTogetherWithAToken(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keys := leasefake.Range{Max: "FF"}
	for _, c := range []struct {
		rule           string
		from           leasefake.StartFrom
		token          *string
		start          changefeed.StartFrom // configured
		wantToken      string
		wantStart      string
		configuredOnly bool
	}{
		{"a start time and a token", leasefake.FromTime(since), leasefake.At(2), changefeed.StartFrom{}, `"2"`, since.Format(http.TimeFormat), false},
		{"a token of a processor that starts from now", leasefake.FromNow(), leasefake.At(2), changefeed.StartFrom{}, `"2"`, "", false},
		{"a token of a processor that starts from the beginning", leasefake.FromBeginning(), leasefake.At(2), changefeed.StartFrom{}, `"2"`, "", false},
		{"the year 1 is the beginning, and no start time", leasefake.FromTime(time.Time{}), leasefake.At(2), changefeed.StartFrom{}, `"2"`, "", false},
		{"a token of .NET, with a start time that is configured", leasefake.StartFrom{}, leasefake.At(2), changefeed.StartFrom{Time: since}, `"2"`, "", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("orders", 1)
			w.Write("orders", 5)
			p := w.processor("orders")
			p.StartFrom = c.start
			if c.configuredOnly {
				w.epk(p, changefeed.Range(keys), leasefake.Fields{Continuation: c.token})
			} else {
				w.put(w.leasesOf(p).JavaEPK(keys, c.from, leasefake.Fields{Owner: "worker", Continuation: c.token, Updated: time.Now()}))
			}
			var mu sync.Mutex
			var token, start []string
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReadChangeFeed {
					mu.Lock()
					defer mu.Unlock()
					token, start = append(token, r.Header.Get("If-None-Match")), append(start, r.Header.Get("If-Modified-Since"))
				}
				return nil
			})
			check(t, w.estimate(p)[0], "-FF=3 lagging")
			mu.Lock()
			defer mu.Unlock()
			if len(token) != 1 || token[0] != c.wantToken || start[0] != c.wantStart {
				t.Errorf("asked from %q since %q, want %q since %q", token, start, c.wantToken, c.wantStart)
			}
		})
	}
}
