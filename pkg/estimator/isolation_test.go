package estimator_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// neighbourhood is an account some of whose containers do not answer.
type neighbourhood struct {
	*world
	flight
	mu         sync.Mutex
	estimator  *estimator.Estimator
	processors []estimator.Processor // the bad ones first
	bad        int
	took       time.Duration // of the last tick
}

// newNeighbourhood has bad containers of some partitions each, and ten others of one partition.
func newNeighbourhood(w *world, slots, bad, partitions int, fault func(partition int) *cosmosfake.Answer) *neighbourhood {
	n := &neighbourhood{world: w, estimator: estimator.New(slots, time.Now), bad: bad}
	n.over = w.Transport
	w.Transport.ResponseHeaderTimeout = 10 * time.Second // as of an account that makes its own
	account, err := cosmos.NewAccount(cosmos.Options{
		Endpoint: w.Account.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: slots, Transport: &n.flight,
	})
	testworld.Must(w.t, err)
	for i := range bad + 10 {
		id, ranges := fmt.Sprint("bad-", i), partitions
		if i >= bad {
			id, ranges = fmt.Sprint("good-", i), 1
		}
		w.Container(id, ranges)
		p := w.processor(id)
		p.Account, p.LeaseAccount = account, account
		for r := range ranges {
			w.lease(p, strconv.Itoa(r), "0", "worker")
		}
		n.processors = append(n.processors, p)
	}
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadChangeFeed && len(r.Container) > 4 && r.Container[:4] == "bad-" {
			partition, _ := strconv.Atoi(r.RangeID)
			return fault(partition)
		}
		return nil
	})
	return n
}

// flight is a transport that counts the requests that are in flight.
type flight struct {
	over         http.RoundTripper
	flying, most atomic.Int64
}

func (f *flight) Do(r *http.Request) (*http.Response, error) {
	defer f.flying.Add(-1)
	if n := f.flying.Add(1); n > f.most.Load() {
		f.most.Store(n)
	}
	return f.over.RoundTrip(r)
}

// tick measures all processors as a tick does that has some time, before the next one is due.
func (n *neighbourhood) tick(patience, interval time.Duration) []changefeed.ProcessorLag {
	began := time.Now()
	next := began.Add(interval)
	n.processors[0].Account.Until(next, began)
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	lags := make([]changefeed.ProcessorLag, len(n.processors))
	n.estimator.Estimate(ctx, time.Now().Add(patience), n.processors, func(i int, lag changefeed.ProcessorLag) { lags[i] = lag })
	n.took = time.Since(began)
	if flying := n.flying.Load(); flying != 0 {
		n.t.Errorf("%d requests are in flight after the tick", flying)
	}
	for i := range n.processors {
		n.processors[i].Last = func() changefeed.ProcessorLag { return lags[i] }
	}
	time.Sleep(time.Until(next))
	return lags
}

func TestABadContainerBlindsNoOther(t *testing.T) { badContainersBlindNoOther(t, 8, 1) }

func TestABadContainerBlindsNoOther_Long(t *testing.T) { badContainersBlindNoOther(t, 64) }

// badContainersBlindNoOther has containers whose partitions do not answer, in each way that was seen: in every
// tick each of ten neighbours is measured.
func badContainersBlindNoOther(t *testing.T, allSlots ...int) {
	t.Helper()
	t.Parallel()
	throttled := cosmosfake.Answer{Status: 429, Substatus: 3200, Header: map[string][]string{"X-Ms-Retry-After-Ms": {"3000"}}}
	for _, c := range []struct {
		rule       string
		partitions int // 0 = more than there are slots
		interval   time.Duration
		fault      func(partition int) *cosmosfake.Answer
	}{
		{"six partitions answer 503", 6, 500 * time.Millisecond, func(int) *cosmosfake.Answer { return &cosmosfake.Answer{Status: 503} }},
		{"more partitions than slots answer 503", 0, 500 * time.Millisecond, func(int) *cosmosfake.Answer { return &cosmosfake.Answer{Status: 503} }},
		{"more partitions than slots are throttled", 0, 500 * time.Millisecond, func(int) *cosmosfake.Answer { return &throttled }},
		{"more partitions than slots hang", 0, 15 * time.Second, func(int) *cosmosfake.Answer { return &cosmosfake.Answer{Delay: time.Hour} }},
		{"more partitions than slots hang at short ticks", 0, 500 * time.Millisecond, func(int) *cosmosfake.Answer { return &cosmosfake.Answer{Delay: time.Hour} }},
	} {
		for _, slots := range allSlots {
			for _, bad := range []int{1, 2, 5} {
				t.Run(fmt.Sprintf("%s of %d containers, at %d slots", c.rule, bad, slots), func(t *testing.T) {
					t.Parallel()
					inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
						n := newNeighbourhood(w, slots, bad, cmp.Or(c.partitions, slots+6), c.fault)
						for tick := range 3 {
							for i, lag := range n.tick(12*time.Second, c.interval) {
								if i >= bad && !lag.Complete() {
									t.Errorf("tick %d: neighbour %d is unknown: %s", tick, i-bad, lag.Problem())
								}
							}
							if t.Failed() {
								return
							}
						}
						if most := int(n.most.Load()); most > slots {
							t.Errorf("%d requests were in flight, of %d", most, slots)
						}
					})
				})
			}
		}
	}
}

func TestAPartitionThatFailsBlindsNoOtherOfItsContainer(t *testing.T) {
	partitionsBlindNoOther(t, 30, 8)
}

func TestAPartitionThatFailsBlindsNoOtherOfItsContainer_Long(t *testing.T) {
	partitionsBlindNoOther(t, 100, 64, 8)
}

// partitionsBlindNoOther has six of some partitions answer 503, or hang.
func partitionsBlindNoOther(t *testing.T, partitions int, allSlots ...int) {
	t.Helper()
	t.Parallel()
	for rule, answer := range map[string]cosmosfake.Answer{"503": {Status: 503}, "hang": {Delay: time.Hour}} {
		for _, slots := range allSlots {
			t.Run(fmt.Sprintf("%s, at %d slots", rule, slots), func(t *testing.T) {
				t.Parallel()
				inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
					var healed atomic.Bool
					n := newNeighbourhood(w, slots, 1, partitions, func(partition int) *cosmosfake.Answer {
						if partition >= 6 || healed.Load() {
							return nil
						}
						return &answer
					})
					for tick := range 8 {
						lag := n.tick(30*time.Second, 15*time.Second)[0]
						unknown := 0
						for _, p := range lag.Partitions {
							if !p.Known() {
								unknown++
							}
						}
						if tick > 0 && unknown != 6 {
							t.Errorf("tick %d: %d partitions are unknown, want six: %s", tick, unknown, lag.Problem())
						}
					}
					healed.Store(true)
					if lag := n.tick(30*time.Second, 15*time.Second)[0]; !lag.Complete() {
						t.Errorf("they answer again: %s", lag.Problem())
					}
				})
			})
		}
	}
}

// TestAnAccountThatRefusesEverythingIsAskedOncePerContainer counts what it is asked in the eleventh of
// short ticks.
func TestAnAccountThatRefusesEverythingIsAskedOncePerContainer(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 6, 20} {
		for _, slots := range []int{64, 8, 1} {
			t.Run(fmt.Sprintf("%d partitions, at %d slots", partitions, slots), func(t *testing.T) {
				t.Parallel()
				inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
					const containers = 5
					asked, refuses := map[string]int{}, &atomic.Bool{}
					n := newNeighbourhood(w, slots, containers, partitions, func(int) *cosmosfake.Answer { return nil })
					n.processors = n.processors[:containers]
					w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
						n.mu.Lock()
						defer n.mu.Unlock()
						if asked[r.Container]++; refuses.Load() && r.Kind != cosmosfake.QueryDocuments {
							return &cosmosfake.Answer{Status: 503}
						}
						return nil
					})
					n.tick(12*time.Second, 400*time.Millisecond)
					refuses.Store(true)
					for range 10 {
						n.tick(12*time.Second, 400*time.Millisecond)
					}
					n.mu.Lock()
					clear(asked)
					n.mu.Unlock()
					n.tick(12*time.Second, 400*time.Millisecond)
					for container, times := range asked {
						if times > 1 {
							t.Errorf("%s was asked %d times in the eleventh tick", container, times)
						}
					}
				})
			})
		}
	}
}

// TestAPartitionThatHangsGetsAShortLook measures how long each tick takes: one of five has the full time,
// and none more than until the next tick is due.
func TestAPartitionThatHangsGetsAShortLook(t *testing.T) {
	t.Parallel()
	inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
		n := newNeighbourhood(w, 8, 1, 2, func(partition int) *cosmosfake.Answer {
			if partition == 0 {
				return &cosmosfake.Answer{Delay: time.Hour}
			}
			return nil
		})
		var took []int
		for range 11 {
			n.tick(15*time.Second, 3*time.Second)
			took = append(took, int(n.took.Round(time.Second)/time.Second))
		}
		if want := []int{10, 1, 3, 1, 1, 1, 1, 3, 1, 1, 1}; !slices.Equal(took, want) {
			t.Errorf("ticks took %v s, want %v", took, want)
		}
	})
}
