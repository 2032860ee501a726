package processors_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// hourOf is one in which two owners were live.
func hourOf(at time.Time) *state.Summary {
	return &state.Summary{Hour: at, Seconds: 3600, OwnersKnown: 3600, ReplicaSeconds: 7200, RequestCharge: 10, StatusSeconds: map[changefeed.Status]float64{changefeed.StatusOK: 3600}}
}

func (f function) report(t *testing.T, query string) shadow.Report {
	t.Helper()
	w := f.ask(t, http.MethodGet, "/api/report"+query)
	var r shadow.Report
	testworld.Must(t, json.Unmarshal(w.Body.Bytes(), &r))
	if w.Code != http.StatusOK {
		t.Errorf("%s: %d %s", query, w.Code, w.Body)
	}
	return r
}

func TestReportAnswersWithFinishedHoursAndTheRunningOne(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "payments")
	s := lagging("orders")
	s.Finished, s.Hour = hourOf(noon.Add(-time.Hour)), hourOf(noon)
	f.commit(t, s)
	f.clock.Advance(30 * time.Minute)
	r := f.report(t, "")
	if len(r.Processors) != 2 || *r.Processors[0].ReplicaHours != 4 || r.Processors[1].ReplicaHours != nil || r.Note == "" || r.NextPage != nil {
		t.Errorf("got %+v", r)
	}
	if !r.Since.Equal(noon.Add(-168 * time.Hour)) {
		t.Errorf("since %s, want a week", r.Since)
	}
	if r := f.report(t, "?since=20m&name=orders"); len(r.Processors) != 1 || *r.Processors[0].ReplicaHours != 2 {
		t.Errorf("got %+v", r)
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/api/report?name=order"), 404, "order")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/report?since=9000h"), 400, "365 days")
	wantProblem(t, f.ask(t, http.MethodGet, "/api/report?page=2"), 400, "nextPage")
	wantProblem(t, f.ask(t, http.MethodPost, "/api/report"), 405, "only GET")
}

func TestReportAnswersForAGroupWithItsMembers(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders", "payments", "other")
	f.handler.Groups = []overview.Subject{{Name: "shop"}}
	f.handler.Processors[0].Group, f.handler.Processors[1].Group = "shop", "shop"
	for _, name := range []string{"orders", "payments"} {
		s := lagging(name)
		s.Hour = hourOf(noon)
		f.commit(t, s)
	}
	f.clock.Advance(time.Minute)
	if r := f.report(t, "?name=shop"); len(r.Processors) != 2 || *r.Total.ReplicaHours != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestReportAnswersByPage(t *testing.T) {
	t.Parallel()
	names := make([]string, processors.ReportPage+1)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	f := newFunction(t, names...)
	first, second := f.report(t, ""), f.report(t, "?page=1")
	if len(first.Processors) != processors.ReportPage || first.NextPage == nil || *first.NextPage != 1 {
		t.Errorf("%d processors, next page %v", len(first.Processors), first.NextPage)
	}
	if len(second.Processors) != 1 || second.NextPage != nil || second.Processors[0].Name != "p500" {
		t.Errorf("%d processors, next page %v", len(second.Processors), second.NextPage)
	}
}

// BenchmarkReportOfAWeek reads a week of 5,000 processors: at most 10 s and 128 MiB.
func BenchmarkReportOfAWeek(b *testing.B) {
	const count, week = 5_000, 168
	path := filepath.Join(b.TempDir(), "feedscale.db")
	store, err := boltstore.Open(path)
	testworld.Must(b, err)
	h := &overview.Overview{Now: func() time.Time { return noon }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	var commits errgroup.Group
	commits.SetLimit(500)
	for i := range count {
		p := overview.Subject{Name: fmt.Sprintf("processor-%d", i)}
		if i%10 < 3 {
			p.Group = fmt.Sprintf("group-%d", i/10)
		}
		h.Processors = append(h.Processors, p)
		s := lagging(p.Name)
		s.AttemptedAt, s.Hour = noon, hourOf(noon)
		commits.Go(func() error { return store.Commit(b.Context(), "", s, nil) })
	}
	testworld.Must(b, commits.Wait())
	testworld.Must(b, store.Close())
	fill(b, path, h.Processors, week)
	for b.Loop() {
		store, err := boltstore.Open(path)
		testworld.Must(b, err)
		h.Store = store
		debug.FreeOSMemory() // of what wrote the file
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		base := before.HeapInuse // of what wrote the file, which is no part of the report
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(before.Sys-before.HeapReleased) + 96<<20))
		most, stop := heap()
		r, err := h.Report(b.Context(), h.Processors, noon.Add(-week*time.Hour), func(int) {})
		testworld.Must(b, err)
		close(stop)
		b.ReportMetric(float64(<-most-base)/(1<<20), "MiB")
		if len(r.Processors) != count || *r.Processors[7].ReplicaHours != 2*week {
			b.Fatalf("%d processors, the eighth with %v replica-hours", len(r.Processors), r.Processors[7].ReplicaHours)
		}
		testworld.Must(b, store.Close())
	}
}

// fill writes the hours that as many commits would take long to write.
func fill(b *testing.B, path string, processors []overview.Subject, hours int) {
	b.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	testworld.Must(b, err)
	testworld.Must(b, db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte("feedscale.history.v1")).Bucket([]byte{0})
		for _, p := range processors {
			for i := range hours {
				at := noon.Add(time.Duration(i-hours) * time.Hour)
				text, err := json.Marshal(hourOf(at))
				if err != nil {
					return err
				}
				if err := bucket.Put(binary.BigEndian.AppendUint64([]byte(p.Name+"\x00"), uint64(at.Unix())^1<<63), text); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	testworld.Must(b, db.Close())
}

// heap returns the most that the heap held, in bytes, once stop is closed.
func heap() (most chan uint64, stop chan struct{}) {
	most, stop = make(chan uint64, 1), make(chan struct{})
	go func() {
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		var peak uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				most <- peak
				return
			case <-look.C:
			}
		}
	}()
	return most, stop
}
