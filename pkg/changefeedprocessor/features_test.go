package changefeedprocessor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// warnings collect what is logged at Warn and above.
type warnings struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (l *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l *warnings) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.lines = append(l.lines, line)
	return nil
}

func (l *warnings) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.Contains(line, text) })
}

func TestAllMistakesInTheOptionsComeAtOnce(t *testing.T) {
	t.Parallel()
	_, err := changefeedprocessor.New(changefeedprocessor.Container{}, changefeedprocessor.Container{Database: "shop"}, changefeedprocessor.Options{
		Name: "a/b", FromBeginning: true, StartTime: time.Now(), MaxItems: -1, Drain: -1,
		Mode: changefeedprocessor.AllVersionsAndDeletes, RenewInterval: time.Hour,
	})
	said := fmt.Sprint(err)
	for _, want := range []string{
		"monitored container has no Client", "monitored container has no Database", "monitored container has no ID",
		"lease container has no Client", "lease container has no ID", "Instance is empty", "Name \"a/b\"", "Handle is missing",
		"both set", "not from the beginning", "MaxItems is negative", "Drain is negative", "RenewInterval 1h0m0s must be below",
	} {
		_, rest, found := strings.Cut(said, want)
		if !found {
			t.Errorf("got %v, want %q in it, and always in this order", err, want)
		}
		said = rest
	}
}

func TestAFailingHandlerIsCalledAgainWithItsLeaseHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(3)
		c := calls{began: time.Now()}
		var released []error
		s.host("host-1", func(o *changefeedprocessor.Options) {
			o.Handle, o.Retries = c.of(func(context.Context, changefeedprocessor.Batch) error { panic("scripted") }), 0
			o.Released = func(_ string, why error) { released = append(released, why) }
		})
		pass(30 * time.Second)
		if l := s.leases()["0"]; !l.OwnedBy("host-1") {
			t.Errorf("after 30 s: lease %+v, want it held", l)
		}
		pass(2 * time.Second)
		second := time.Second
		if want := []time.Duration{0, second, 3 * second, 7 * second, 15 * second, 31 * second}; !slices.Equal(c.at, want) {
			t.Errorf("called at %v, want %v", c.at, want)
		}
		if l := s.leases()["0"]; !l.OwnedBy("") || l.Continuation != nil || len(released) != 1 || !strings.Contains(fmt.Sprint(released[0]), "panicked: scripted") {
			t.Errorf("after 32 s: lease %+v, released because of %v, want it free because of the panic", l, released)
		}
	})
}

func TestPoisonIsFoundByHalvingAndTheOthersAreHandledOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		poison func(context.Context, changefeedprocessor.Poisoned) error
		want   int // handled
		stops  bool
	}{
		{"skip", changefeedprocessor.Skip, 29, false},
		{"a dead letter that cannot be written is tried again", nil, 29, false},
		{"stop", changefeedprocessor.Stop, 12, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, s *shop) {
				s.write(30)
				handled := map[string]int{}
				var letters []changefeedprocessor.Poisoned
				tries := 0
				host := s.host("host-1", func(o *changefeedprocessor.Options) {
					o.MaxItems, o.Retries = 30, 2
					o.Handle = func(_ context.Context, b changefeedprocessor.Batch) error {
						for _, item := range b.Items {
							if strings.Contains(string(item), `"order-13"`) {
								return errScripted
							}
						}
						for _, item := range b.Items {
							handled[testworld.Decode[change](t, item).ID]++
						}
						return nil
					}
					o.Poison = func(ctx context.Context, p changefeedprocessor.Poisoned) error {
						letters = append(letters, p)
						if c.poison != nil {
							return c.poison(ctx, p)
						}
						if tries++; tries == 1 {
							return errors.New("no room for letters")
						}
						return nil
					}
				})
				pass(time.Minute)
				if c.stops {
					err := <-host.ended
					if !errors.Is(err, changefeedprocessor.ErrStop) || !strings.Contains(err.Error(), `"order-13"`) {
						t.Errorf("Run ended with %v, want ErrStop and the name of the document", err)
					}
				}
				if len(handled) != c.want || handled["order-13"] != 0 || len(letters) == 0 || letters[0].ID != "order-13" || !errors.Is(letters[0].Err, errScripted) || letters[0].Lease != "0" {
					t.Errorf("%d handled and %+v, want %d and order-13", len(handled), letters, c.want)
				}
				l := s.leases()["0"]
				if c.stops != (l.Continuation == nil) || c.stops != l.OwnedBy("") {
					t.Errorf("got lease %+v, want the page checkpointed unless it stopped", l)
				}
			})
		})
	}
}

// TestOneDocumentAmongManyDoesNotDecode is what ended a loop of ARO-HCP's (Azure/ARO-HCP PR 6154): it is
// found, named by its id, and the others arrive on time.
func TestOneDocumentAmongManyDoesNotDecode_Long(t *testing.T) {
	t.Parallel()
	const documents, at = 100_000, 54_321
	s := newShop(t, 4)
	batch := make([]any, 0, documents)
	for i := range documents {
		d := map[string]any{"id": fmt.Sprint("order-", i), "customer": fmt.Sprint("customer-", i%100), "total": i}
		if i == at {
			d["total"] = "a text"
		}
		batch = append(batch, d)
	}
	s.Put("orders", batch...)
	type order struct {
		ID    string
		Total int
	}
	var handled atomic.Int64
	var found atomic.Value
	s.host("host-1", func(o *changefeedprocessor.Options) {
		o.MaxItems, o.Retries, o.RetryDelay = 100, 5, time.Minute // no time for that
		o.Poison = func(_ context.Context, p changefeedprocessor.Poisoned) error { found.Store(p); return nil }
		o.Handle = changefeedprocessor.Of(func(_ context.Context, _ changefeedprocessor.Batch, orders []order) error {
			handled.Add(int64(len(orders)))
			return nil
		})
	})
	testworld.Eventually(t, "all others are handled", func() bool { return handled.Load() == documents-1 })
	p, _ := found.Load().(changefeedprocessor.Poisoned)
	var item *changefeedprocessor.ItemError
	if p.ID != fmt.Sprint("order-", at) || !errors.As(p.Err, &item) || item.ID != p.ID {
		t.Errorf("got %+v, want the one document", p)
	}
}

func TestManualCheckpointsAreWrittenWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(21)
		var mu sync.Mutex // the children of a split are handled side by side
		var batches []changefeedprocessor.Batch
		host := s.host("host-1", func(o *changefeedprocessor.Options) {
			o.Manual = true
			o.Handle = func(_ context.Context, b changefeedprocessor.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				batches = append(batches, b)
				return nil
			}
		})
		pass(time.Second)
		if l := s.leases()["0"]; len(batches) != 3 || l.Continuation != nil {
			t.Fatalf("%d batches and lease %+v, want 3 and no checkpoint", len(batches), l)
		}
		testworld.Must(t, batches[1].Checkpoint(t.Context()))
		testworld.Must(t, batches[0].Checkpoint(t.Context())) // is covered already
		if l := s.leases()["0"]; *l.Continuation != `"14"` {
			t.Errorf("got lease %+v, want it at the second batch", l)
		}
		s.split("0")
		pass(10 * time.Second)
		if got := len(batches); got < 4 {
			t.Errorf("%d batches, want what was not checkpointed again, from the children", got)
		}
		s.stopAll(host)
		if err := batches[len(batches)-1].Checkpoint(t.Context()); err == nil {
			t.Error("a batch was checkpointed after its lease was released")
		}
	})
}

func TestACheckpointByHandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		var batch changefeedprocessor.Batch
		s.host("host-1", func(o *changefeedprocessor.Options) {
			o.Manual = true
			o.Handle = func(_ context.Context, b changefeedprocessor.Batch) error { batch = b; return nil }
		})
		pass(time.Second)
		for _, answer := range []cosmosfake.Answer{{Status: http.StatusTooManyRequests}, {Delay: time.Hour}} {
			end := s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReplaceDocument {
					return &answer
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			began := time.Now()
			if err := batch.Checkpoint(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 4*time.Second {
				t.Errorf("got %v after %s, want the end of the context after 3 s", err, time.Since(began))
			}
			cancel()
			end()
		}
		if err := batch.Checkpoint(t.Context()); err != nil || *s.leases()["0"].Continuation != `"5"` {
			t.Errorf("later: %v", err)
		}
	})
}

// TestAPartOfAPageIsNotCheckpointed has a handler that checkpoints whatever it gets, and poison behind it.
func TestAPartOfAPageIsNotCheckpointed(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(8)
		var checkpoints []string
		s.host("host-1", func(o *changefeedprocessor.Options) {
			o.MaxItems, o.Manual = 8, true
			o.Poison = changefeedprocessor.Skip
			o.Handle = func(ctx context.Context, b changefeedprocessor.Batch) error {
				for _, item := range b.Items {
					if strings.Contains(string(item), `"order-6"`) {
						return errScripted
					}
				}
				err := b.Checkpoint(ctx)
				at := "none"
				if l := s.leases()["0"]; l.Continuation != nil {
					at = *l.Continuation
				}
				checkpoints = append(checkpoints, fmt.Sprint(len(b.Items), " ", at))
				return err
			}
		})
		pass(time.Minute)
		if want := []string{"4 none", "1 none", `2 "8"`}; !slices.Equal(checkpoints, want) {
			t.Errorf("got %q, want %q", checkpoints, want)
		}
	})
}

func TestAStartIsTriedAgainWhileTheAccountThrottles(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		end := s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind != cosmosfake.CreateDocument && r.Kind != cosmosfake.QueryDocuments {
				return nil
			}
			return &cosmosfake.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"X-Ms-Retry-After-Ms": {"500"}}}
		})
		host := s.host("host-1", nil)
		pass(20 * time.Second)
		end()
		pass(20 * time.Second)
		if owned := s.owners()["host-1"]; owned != 1 {
			t.Errorf("%d leases are owned, want the one", owned)
		}
		s.stopAll(host)
	})
}

func TestStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		start func(o *changefeedprocessor.Options, middle time.Time)
		want  int
	}{
		{"now", func(o *changefeedprocessor.Options, _ time.Time) { o.FromBeginning = false }, 5},
		{"from the beginning", func(*changefeedprocessor.Options, time.Time) {}, 25},
		{"from a time", func(o *changefeedprocessor.Options, middle time.Time) { o.FromBeginning, o.StartTime = false, middle }, 15},
		{"the year 1 is the beginning", func(o *changefeedprocessor.Options, _ time.Time) {
			o.FromBeginning, o.StartTime = false, time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)
		}, 25},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, s *shop) {
				s.write(10)
				pass(10 * time.Second)
				middle := time.Now()
				pass(time.Second)
				s.write(10)
				pass(10 * time.Second)
				s.host("host-1", func(o *changefeedprocessor.Options) { c.start(o, middle) })
				pass(20 * time.Second)
				s.write(5)
				pass(20 * time.Second)
				if got := s.count(); got != c.want {
					t.Errorf("%d changes were handled, want %d", got, c.want)
				}
			})
		})
	}
}

func TestAStartTimeIsSentBesideAContinuation(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(t *testing.T, s *shop) {
		start := time.Now().Add(-time.Hour)
		var without atomic.Int64
		s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed && r.Header.Get("If-Modified-Since") != start.UTC().Format(http.TimeFormat) {
				without.Add(1)
			}
			return nil
		})
		s.write(10)
		s.host("host-1", func(o *changefeedprocessor.Options) { o.FromBeginning, o.StartTime = false, start })
		pass(10 * time.Second)
		s.merge("0", "1")
		s.write(10)
		pass(20 * time.Second)
		s.checkOnce()
		if n := without.Load(); n > 0 {
			t.Errorf("%d reads had no start time", n)
		}
	})
}

func TestKeysThatNoLeaseCovers(t *testing.T) {
	t.Parallel()
	for _, create := range []bool{false, true} {
		t.Run(fmt.Sprint("the marker is deleted: ", create), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(t *testing.T, s *shop) {
				s.create()
				id := s.leases()["1"].ID
				lost := []string{id}
				if create {
					lost = append(lost, strings.TrimSuffix(id, "..1")+".info")
				}
				for _, id := range lost {
					testworld.Must(t, s.Account.Delete(testworld.Database, testworld.Leases, id, id))
				}
				s.write(30)
				var l warnings
				s.host("host-1", func(o *changefeedprocessor.Options) { o.Log = slog.New(&l) })
				pass(20 * time.Second)
				if _, made := s.leases()["1"]; made != create {
					t.Errorf("got leases %q", s.tokens())
				}
				if warned := len(l.lines) == 1 && l.has("of range 1]"); warned == create {
					t.Errorf("logged %q, want one warning that names the range unless leases are created", l.lines)
				}
				if all := s.count() == 30; all != create {
					t.Errorf("%d changes were handled", s.count())
				}
			})
		})
	}
}

func TestAllVersionsAndDeletes(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{Account: cosmosfake.Options{VersionRetention: time.Hour}})
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/customer"}, Partitions: 2})
	s := &shop{World: w, t: t, sdk: w.SDK(), handled: map[string][]change{}}
	s.timing = newShop(t, 1).timing
	var mu sync.Mutex
	var got []changefeedprocessor.Change
	var documents []change
	seen := func() int { mu.Lock(); defer mu.Unlock(); return len(got) }
	h := s.host("host-1", func(o *changefeedprocessor.Options) {
		o.Mode, o.FromBeginning = changefeedprocessor.AllVersionsAndDeletes, false
		o.Handle = changefeedprocessor.Of(func(_ context.Context, b changefeedprocessor.Batch, decoded []change) error {
			changes, err := b.Changes()
			mu.Lock()
			defer mu.Unlock()
			got, documents = append(got, changes...), append(documents, decoded...)
			return err
		})
	})
	testworld.Eventually(t, "the leases have a position", func() bool {
		found := s.leases() // once: a second list may have a lease that this one has not
		for _, l := range found {
			if l.Continuation == nil {
				return false
			}
		}
		return len(found) == 2
	})
	for _, l := range s.leases() {
		if l.Mode != "Full-Fidelity Feed" {
			t.Errorf("got lease %+v, want its mode", l)
		}
	}
	s.Put("orders", map[string]any{"id": "a", "customer": "c"})
	s.Put("orders", map[string]any{"id": "a", "customer": "c", "n": 2})
	testworld.Must(t, s.Account.Delete(testworld.Database, "orders", "a", "c"))
	testworld.Eventually(t, "three changes", func() bool { return seen() == 3 })
	s.stopAll(h)
	for i, want := range []string{"create", "replace", "delete"} {
		c := got[i]
		if c.Operation != want || c.LSN == 0 || c.Time.IsZero() || (c.Current == nil) != (want == "delete") || want == "delete" && c.Previous == nil || documents[i].ID != "a" {
			t.Errorf("got %+v and %+v, want a %s", c, documents[i], want)
		}
	}
}

// TestHostsShareLeasesOfEverySDK has hosts that find leases of one format go on in it, through a split and,
// where the format can follow it, a merge.
func TestHostsShareLeasesOfEverySDK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		first  func(leasefake.Processor, leasefake.Range) map[string]any
		merges bool
		prefix func(leasefake.Processor) string
	}{
		{".NET", func(p leasefake.Processor, span leasefake.Range) map[string]any {
			return p.DotNetPK("0", span, leasefake.Fields{})
		}, true, leasefake.Processor.DotNetPrefix},
		{"Java PK", func(p leasefake.Processor, _ leasefake.Range) map[string]any {
			return p.JavaPK("0", leasefake.Fields{Created: time.Now()})
		}, false, leasefake.Processor.JavaPKPrefix},
		{"Java EPK", func(p leasefake.Processor, span leasefake.Range) map[string]any {
			return p.JavaEPK(span, leasefake.FromBeginning(), leasefake.Fields{Created: time.Now()})
		}, true, leasefake.Processor.JavaEPKPrefix},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 3)
			of := s.LeasesOf("projection", "127.0.0.1", "orders")
			s.Put(testworld.Leases, c.first(of, leasefake.Range(watch(s).span("0"))))
			first := s.host("host-1", nil) // creates the others
			s.write(30)
			testworld.Eventually(t, "the leases are there", func() bool { return s.owners()["host-1"] == 3 })
			second := s.host("host-2", nil) // finds the format
			testworld.Eventually(t, "both work", func() bool { return s.owners()["host-2"] == 1 })
			children := s.split("1")
			s.write(30)
			testworld.Eventually(t, "all is handled", s.handledAll)
			testworld.Eventually(t, "the parent is gone", func() bool { return s.owners()["host-1"]+s.owners()["host-2"] == 4 && len(s.tokens()) == 4 })
			if c.merges {
				s.merge("0", children[0])
				s.write(30)
				testworld.Eventually(t, "all is handled after a merge", s.handledAll)
			}
			s.stopAll(first, second)
			s.estimate(nil, watch(s).processor.StartFrom)
			prefix := c.prefix(of)
			for id := range s.documents() {
				if !strings.HasPrefix(id, prefix+".") {
					t.Errorf("got id %s, want prefix %s", id, prefix)
				}
			}
		})
	}
}

func TestALeaseContainerByPartitionKeyAndAHierarchicalContainer(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/customer", "/id"}, Partitions: 2})
	w.Create(cosmosfake.ContainerSpec{ID: "keyed", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1})
	s := &shop{World: w, t: t, sdk: w.SDK(), handled: map[string][]change{}, timing: newShop(t, 1).timing}
	start := func(name string) *running {
		line := s.Line()
		monitored, leases, o := s.options(name, line)
		leases.ID = "keyed"
		return s.run(monitored, leases, o, line)
	}
	first := start("host-1")
	s.write(40)
	testworld.Eventually(t, "all is handled", s.handledAll)
	s.split("0")
	s.write(40)
	testworld.Eventually(t, "all is handled after a split", s.handledAll)
	s.stopAll(first)
	second := start("host-2")
	s.write(40)
	testworld.Eventually(t, "all is handled by another host", s.handledAll)
	s.stopAll(second)
	s.checkOnce()
	documents := testworld.Documents[map[string]any](t, s.sdk, testworld.Database, "keyed")
	if len(documents) != 4 { // .info and three leases
		t.Errorf("got %d documents", len(documents))
	}
	for _, d := range documents {
		if d["partitionKey"] != d["id"] {
			t.Errorf("got %v, want its id as the partition key", d)
		}
	}
	// A lease of before 3.59 has a GUID there, which stays.
	var lease map[string]any
	for _, d := range documents {
		if strings.HasSuffix(d["id"].(string), "..1") {
			lease = d
		}
	}
	testworld.Must(t, s.Account.Delete(testworld.Database, "keyed", lease["id"].(string), lease["partitionKey"]))
	lease["partitionKey"] = "4b6d1a2e"
	s.Put("keyed", lease)
	third := start("host-3")
	s.write(40)
	testworld.Eventually(t, "all is handled with a GUID", s.handledAll)
	s.stopAll(third)
	s.checkOnce()
}

func TestThrottledReadsAndWritesKeepTheLease(t *testing.T) {
	t.Parallel()
	for _, kind := range []cosmosfake.Kind{cosmosfake.ReadChangeFeed, cosmosfake.ReplaceDocument} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, s *shop) {
				var lost atomic.Int64
				s.host("host-1", func(o *changefeedprocessor.Options) { o.Released = func(string, error) { lost.Add(1) } })
				pass(10 * time.Second)
				end := s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind != kind {
						return nil
					}
					return &cosmosfake.Answer{Status: http.StatusTooManyRequests, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"700"}}}
				})
				s.write(20)
				pass(40 * time.Second)
				end()
				pass(10 * time.Second)
				if n, owned := lost.Load(), s.owners()["host-1"]; n != 0 || owned != 2 {
					t.Errorf("%d leases were released, %d are owned; want both kept", n, owned)
				}
				s.checkOnce()
			})
		})
	}
}

// TestALeaseThatCannotBeRenewedIsLostBeforeAnotherHostTakesIt has a host that is cut off from the lease
// container alone.
func TestALeaseThatCannotBeRenewedIsLostBeforeAnotherHostTakesIt(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.write(5)
		began := time.Now()
		var ended time.Duration
		var why error
		s.host("host-1", func(o *changefeedprocessor.Options) {
			o.Handle = func(ctx context.Context, _ changefeedprocessor.Batch) error {
				<-ctx.Done()
				ended = time.Since(began)
				return ctx.Err()
			}
			o.Released = func(_ string, err error) { why = err }
		})
		pass(20 * time.Second) // renewed at 8.5 s
		s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Container == testworld.Leases && r.Kind == cosmosfake.ReplaceDocument {
				return &cosmosfake.Answer{Delay: time.Hour}
			}
			return nil
		})
		pass(2 * time.Minute)
		if ended < 60*time.Second || ended > 69*time.Second || !errors.Is(why, changefeedprocessor.ErrLeaseLost) {
			t.Errorf("the handler's context ended after %s, and the lease was released because of %v; want 60 s after the last renewal, and that it is lost", ended, why)
		}
	})
}

// TestARequestThatHangsIsMadeAgain has each kind of request hang once while a host runs.
func TestARequestThatHangsIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []cosmosfake.Kind{cosmosfake.ReadChangeFeed, cosmosfake.ReadRanges, cosmosfake.QueryDocuments, cosmosfake.ReplaceDocument} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, s *shop) {
				s.host("host-1", nil)
				other := s.host("host-2", nil)
				pass(time.Minute)
				other.kill()
				pass(time.Second)
				s.Account.Control(cosmosfake.Once(kind, cosmosfake.Answer{Delay: 24 * time.Hour}))
				s.split("0")
				s.write(20)
				pass(10 * time.Minute)
				seen := map[string]bool{}
				for _, c := range s.order {
					seen[c.ID] = true
				}
				if len(seen) != 20 {
					t.Errorf("%d orders were handled, want 20", len(seen))
				}
			})
		})
	}
}

// TestAnOldListCostsNoLease has a replica of the account that is behind tell of an earlier owner.
func TestAnOldListCostsNoLease(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		s.create()
		of := s.LeasesOf("projection", "127.0.0.1", "orders")
		old, err := json.Marshal(map[string]any{"Documents": []any{
			of.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{Owner: "host-0", Updated: time.Now()}),
		}, "_count": 1})
		testworld.Must(t, err)
		pass(time.Second)
		var released atomic.Int64
		s.host("host-1", func(o *changefeedprocessor.Options) { o.Released = func(string, error) { released.Add(1) } })
		pass(20 * time.Second)
		s.Account.Control(cosmosfake.Once(cosmosfake.QueryDocuments, cosmosfake.Answer{Status: http.StatusOK, Body: string(old)}))
		s.write(5)
		pass(30 * time.Second)
		if n := released.Load(); n != 0 {
			t.Errorf("the lease was given up %d times", n)
		}
		s.checkOnce()
	})
}

func TestNoGoroutineIsLeftAfterRun(t *testing.T) {
	s := newShop(t, 4)
	for range 5 {
		s.write(20)
		h := s.host("host-1", nil)
		testworld.Eventually(t, "all is handled", s.handledAll)
		h.stop()
		s.end(h)
		stacks := make([]byte, 1<<20)
		if stacks := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(stacks, "changefeedprocessor.(") {
			t.Fatalf("after Run:\n%s", stacks)
		}
	}
}

func TestAtMostMaxConcurrencyPagesAreHandledAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 6, func(t *testing.T, s *shop) {
		s.write(200)
		var now, most atomic.Int64
		s.host("host-1", func(o *changefeedprocessor.Options) {
			o.MaxConcurrency = 2
			o.Handle = func(ctx context.Context, b changefeedprocessor.Batch) error {
				n := now.Add(1)
				defer now.Add(-1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Second)
				return s.handle(ctx, b)
			}
		})
		pass(time.Minute)
		s.checkOnce()
		if n := most.Load(); n != 2 {
			t.Errorf("%d pages at once, want 2", n)
		}
	})
}

func TestAcquiredAndReleasedAreTold(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, s *shop) {
		var (
			mu   sync.Mutex
			told []string
		)
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		}
		h := s.host("host-1", func(o *changefeedprocessor.Options) {
			o.Acquired = func(lease string) { tell("acquired %s", lease) }
			o.Released = func(lease string, why error) { tell("released %s: %v", lease, why) }
		})
		pass(time.Second)
		s.split("0")
		pass(10 * time.Second)
		s.stopAll(h)
		slices.Sort(told)
		want := []string{"acquired 0", "acquired 1", "acquired 2", "released 0: " + changefeedprocessor.ErrLeaseReplaced.Error(), "released 1: <nil>", "released 2: <nil>"}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("got %q, want %q", told, want)
		}
	})
}

func TestOfNamesTheItemThatDoesNotDecode(t *testing.T) {
	t.Parallel()
	h := changefeedprocessor.Of(func(context.Context, changefeedprocessor.Batch, []change) error { return nil })
	err := h(t.Context(), changefeedprocessor.Batch{Items: []json.RawMessage{[]byte(`{"id":"a"}`), []byte(`{"id":"b","customer":7}`)}})
	var item *changefeedprocessor.ItemError
	if !errors.As(err, &item) || item.Index != 1 || item.ID != "b" {
		t.Errorf("got %v, want item 1, document b", err)
	}
}
