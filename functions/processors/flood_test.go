package processors_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// recorder is a store that holds a sample of every interval, whenever it is asked for.
type recorder struct {
	state.Empty
	asked *atomic.Int64 // the longest time that it was asked for at once
}

func (r recorder) History(_ context.Context, _ string, from, to time.Time) (samples []state.Sample, err error) {
	for length := int64(to.Sub(from)); ; {
		if before := r.asked.Load(); before >= length || r.asked.CompareAndSwap(before, length) {
			break
		}
	}
	for at := from.Truncate(state.SampleInterval); at.Before(to); at = at.Add(state.SampleInterval) {
		if !at.Before(from) {
			samples = append(samples, state.Sample{
				Time: at, Lag: new(int64(7)), Complete: true, PartitionCount: new(4), Replicas: new(2), Previous: new(2),
				Reasons: []scaling.Reason{{Step: "threshold", Replicas: 2, Why: strings.Repeat("why ", 50)}},
			})
		}
	}
	return samples, nil
}

func recorded(t *testing.T) (function, *atomic.Int64) {
	t.Helper()
	f := newFunction(t, "orders")
	var asked atomic.Int64
	f.handler.Store = recorder{asked: &asked}
	f.handler.Policies = func(string) []simulate.Scaler { return []simulate.Scaler{simulate.KEDA()} }
	f.mux = http.NewServeMux()
	f.handler.Register(f.mux)
	return f, &asked
}

func TestAHistoryHasALimitThatNamesTheStep(t *testing.T) {
	t.Parallel()
	const path = "/api/processors/orders/history"
	for query, want := range map[string]int{
		"": 5_760, "?since=25h": 6_000, "?since=168h&step=5m": 2_016, "?since=2160h&step=30m": 4_320,
		"?since=25h1m": 0, "?since=999h": 0, "?since=168h&step=1m": 0, "?since=0001-01-01T00:00:00Z": 0, "?since=1h&until=9999-01-01T00:00:00Z&step=1s": 6_000,
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			f, asked := recorded(t)
			w := f.ask(t, http.MethodGet, path+query)
			if want == 0 {
				wantProblem(t, w, http.StatusBadRequest, "for a longer step, as in ?step=5m")
			} else if got := len(testworld.Decode[report.History](t, w.Body.Bytes()).Samples); got < want-1 || got > want+1 {
				t.Errorf("%d samples, want %d", got, want)
			}
			if most := time.Duration(asked.Load()); most > 6*time.Hour {
				t.Errorf("%s are read at once", most)
			}
		})
	}
}

// TestManyHistoriesAtOnceTakeNoMemoryToSpeakOf is not parallel to others, whose memory would count.
func TestManyHistoriesAtOnceTakeNoMemoryToSpeakOf(t *testing.T) {
	f, _ := recorded(t)
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what is in use counts, rather than garbage that waits
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	runtime.GC()
	before, most := inUse(), int64(0)
	var asking sync.WaitGroup
	ended := make(chan struct{})
	for path, n := range map[string]int{"/history?since=999h": 20, "/history?since=24h": 20, "/simulation?since=8760h": 4} {
		for range n {
			asking.Go(func() {
				f.mux.ServeHTTP(discarded{make(http.Header)}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/processors/orders"+path, nil))
			})
		}
	}
	go func() {
		asking.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			if grown := most - before; grown > 128<<20 {
				t.Errorf("44 at once take %d MiB", grown>>20)
			}
			return
		case <-time.After(5 * time.Millisecond):
			most = max(most, inUse())
		}
	}
}

// discarded is an answer that nobody keeps.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}
