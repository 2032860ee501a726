package main

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/estimator"
)

// TestMain is the stand-in if a benchmark started this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 7 && os.Args[1] == "standin" {
		if err := serveStandIn(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkPartition measures CPU time and allocations for each partition, of a tick and of the
// bare loop. Wall time would be the stand-in's. Its output is for benchstat
// (docs/decisions/0022-speed.md).
func BenchmarkPartition(b *testing.B) {
	s, err := startStandIn(10, 200, 1, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.stop)
	processors, err := s.list()
	if err != nil {
		b.Fatal(err)
	}
	e := estimator.New(concurrency, time.Now)
	for name, run := range map[string]func() error{
		"tick": func() error { return s.estimate(e, processors) },
		"bare": newBareLoop(s).run,
	} {
		b.Run(name, func(b *testing.B) {
			if err := run(); err != nil { // opens the connections
				b.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cpu := cpuNow()
			b.ResetTimer()
			for range b.N {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			cpu = cpuNow() - cpu
			runtime.ReadMemStats(&after)
			n := float64(b.N * s.leases())
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(cpu/n*1e6, "cpu-µs/partition")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/partition")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/partition")
		})
	}
}
