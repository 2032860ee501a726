package main_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var (
	soakTime = flag.Duration("soak", 3*time.Second, "how long the soak goes on")
	soakPage = flag.String("page", "", "the Markdown file that the soak writes; none where it is empty")
)

// soakRows is how often the soak measures what a process holds.
const soakRows = 12

// pace is the shortest time of a step of the soak.
const pace = 250 * time.Millisecond

// soaked is what the process held after some time, with all faults ended.
type soaked struct {
	after                    time.Duration
	ticks, faults, kills     int
	decisions, events, units float64
	// lags that a tick reported: all, different from the exact ones, and incomplete
	measured, wrong, unknown int
	worst                    int // greatest difference
	goroutines               float64
	usage
}

// TestNothingGrowsWhereThingsGoWrongForLong_Long lets one handler tick while everything around it
// fails from time to time, and kills another one on the same table. It prints what the first holds,
// row by row.
func TestNothingGrowsWhereThingsGoWrongForLong_Long(t *testing.T) {
	t.Parallel()
	total := &record{kills: map[string]int{}}
	w := newChaos(t, *chaosSeed, "two hosts", total)
	w.exact, w.spared = true, w.processes[0]
	w.settle()
	began := time.Now()
	rows := []soaked{w.soaked(began)}
	each := *soakTime / soakRows
	var row soaked
	for !t.Failed() && time.Since(began) < *soakTime {
		step := time.Now()
		w.step()
		w.compare(step, &row)
		time.Sleep(time.Until(step.Add(pace)))
		if time.Since(began) < each*time.Duration(len(rows)) {
			continue
		}
		w.settle()
		now := w.soaked(began)
		now.measured, now.wrong, now.unknown, now.worst = row.measured, row.wrong, row.unknown, row.worst
		rows, row = append(rows, now), soaked{}
	}
	page := soakedPage(rows)
	t.Log("\n" + page)
	if *soakPage != "" {
		testworld.Must(t, os.MkdirAll(filepath.Dir(*soakPage), 0o755))
		testworld.Must(t, os.WriteFile(*soakPage, []byte(page), 0o644))
	}
	if len(rows) < 2 {
		t.Fatal("there was no time to look")
	}
	// By the middle, caches and pools are warm. How many connections stand idle goes up and down with the faults.
	first, last := rows[1], rows[len(rows)-1]
	for _, row := range rows[1 : 1+len(rows)/2] {
		first.descriptors, first.goroutines, first.memory = max(first.descriptors, row.descriptors), max(first.goroutines, row.goroutines), max(first.memory, row.memory)
	}
	if last.descriptors > first.descriptors+20 || last.goroutines > first.goroutines+40 || last.memory > 2*first.memory {
		w.breaks("a process grew from %+v to %+v", first, last)
	}
}

// compare compares the lags that the spared process reported since a time with the exact ones.
func (w *chaos) compare(since time.Time, row *soaked) {
	status, body, err := w.spared.get("/api/processors?fields=summary")
	var all struct{ Processors []shown }
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &all) != nil {
		return // the state cannot be read
	}
	for i, p := range w.processors {
		if i >= len(all.Processors) || all.Processors[i].PolledAt.Before(since) {
			continue
		}
		s := all.Processors[i]
		row.measured++
		switch {
		case s.Lag == nil || !s.Complete:
			row.unknown++
		case *s.Lag != p.lag:
			row.wrong++
			row.worst = max(row.worst, max(*s.Lag-p.lag, p.lag-*s.Lag))
			w.tell("%s: lag %d is reported, %d is exact, status %s", p.name, *s.Lag, p.lag, s.Status)
		}
	}
}

// soaked measures the spared process.
func (w *chaos) soaked(began time.Time) soaked {
	now := soaked{after: time.Since(began), events: float64(w.judge.events())}
	w.record.add(func(r *record) {
		now.ticks, now.faults = r.ticks, r.faults
		for _, n := range r.kills {
			now.kills += n
		}
	})
	_, body, err := w.spared.get("/api/metrics")
	if err != nil {
		w.breaks("the metrics cannot be read: %v", err)
	}
	now.decisions, now.units = summed(body, "feedscale_decisions_total"), summed(body, "feedscale_request_charge_total")
	now.goroutines = summed(body, "go_goroutines")
	if now.usage, err = usageOf(w.spared.pid()); err != nil {
		w.breaks("the process cannot be looked at: %v", err)
	}
	return now
}

// summed adds up the samples of a metric.
func summed(metrics []byte, name string) (sum float64) {
	for line := range strings.Lines(string(metrics)) {
		labelled, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if before, _, _ := strings.Cut(labelled, "{"); before == name {
			if i := strings.LastIndex(value, " "); i >= 0 {
				value = value[i+1:]
			}
			number, _ := strconv.ParseFloat(value, 64)
			sum += number
		}
	}
	return sum
}

// soakedPage formats the rows in Markdown.
func soakedPage(rows []soaked) string {
	var page strings.Builder
	last := rows[len(rows)-1]
	fmt.Fprintf(&page, "# Soak\n\n%s, %d ticks of two handlers on one table, %d faults, %d ends by a signal; %d CPUs, %s/%s, %s.\n\n",
		last.after.Round(time.Second), last.ticks, last.faults, last.kills, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format(time.DateOnly))
	page.WriteString("Of the handler that is not killed, each row with all faults over. A lag is wrong where a complete poll under faults\n" +
		"reported another than the exact one, and unknown where the poll was not complete.\n\n" +
		"| after | ticks | decisions | events | lags | unknown | wrong | worst | MiB | descriptors | goroutines | threads | RU |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&page, "| %s | %d | %.0f | %.0f | %d | %d | %d | %d | %.1f | %d | %.0f | %d | %.0f |\n", r.after.Round(time.Second), r.ticks, r.decisions, r.events,
			r.measured, r.unknown, r.wrong, r.worst, float64(r.memory)/1024, r.descriptors, r.goroutines, r.threads, r.units)
	}
	fmt.Fprintf(&page, "\nGrowth in an hour, by least squares over the second half: %.1f MiB, %.1f descriptors, %.1f goroutines.\n",
		slope(rows, func(r soaked) float64 { return float64(r.memory) / 1024 }),
		slope(rows, func(r soaked) float64 { return float64(r.descriptors) }), slope(rows, func(r soaked) float64 { return r.goroutines }))
	return page.String()
}

// slope returns how much a value grows in an hour.
func slope(rows []soaked, of func(soaked) float64) float64 {
	rows = rows[len(rows)/2:]
	var n, x, y, xx, xy float64
	for _, r := range rows {
		at, value := r.after.Hours(), of(r)
		n, x, y, xx, xy = n+1, x+at, y+value, xx+at*at, xy+at*value
	}
	if n*xx == x*x {
		return 0
	}
	return (n*xy - x*y) / (n*xx - x*x)
}
