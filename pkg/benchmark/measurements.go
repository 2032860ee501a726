package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/freeport"
	"github.com/feedscale/feedscale/pkg/estimator"
)

const runs = 5 // per measurement; the median is printed

// cpuPerPartition compares the CPU time of a tick, including the query of the leases, with that of
// the bare loop. Both run in this process and use the same stand-in, in turns.
func cpuPerPartition(string) error {
	s, err := startStandIn(10, 200, 1, 0, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	processors, err := s.list()
	if err != nil {
		return err
	}
	e := estimator.New(concurrency, time.Now)
	b := newBareLoop(s)
	var ticks, loops, ratios []float64
	for run := range 3*runs + 1 { // short runs, since others may use the machine
		tick, err := cpuOf(func() error { return s.estimate(e, processors) })
		if err != nil {
			return err
		}
		loop, err := cpuOf(b.run)
		if err != nil {
			return err
		}
		if run > 0 { // the first run warms up both
			ticks, loops, ratios = append(ticks, tick), append(loops, loop), append(ratios, tick/loop)
		}
	}
	n := float64(s.leases())
	row("CPU per partition, tick", fmt.Sprintf("%.0f µs", median(ticks)/n*1e6), "")
	row("CPU per partition, bare loop", fmt.Sprintf("%.0f µs", median(loops)/n*1e6), "")
	row("CPU per partition, ratio", fmt.Sprintf("%.2fx", median(ratios)), "at most 1.6x")
	return nil
}

// cpuOf returns the CPU seconds that this process spends in f.
func cpuOf(f func() error) (float64, error) {
	before := cpuNow()
	err := f()
	return cpuNow() - before, err
}

func cpuNow() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// wallOfSlowAnswers measures the wall time of a tick of 200 partitions whose answers take 5 ms.
func wallOfSlowAnswers(string) error {
	s, err := startStandIn(1, 200, 1, 5*time.Millisecond, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	processors, err := s.list()
	if err != nil {
		return err
	}
	e := estimator.New(concurrency, time.Now)
	var times []float64
	for run := range runs + 1 {
		start := time.Now()
		if err := s.estimate(e, processors); err != nil {
			return err
		}
		if run > 0 {
			times = append(times, time.Since(start).Seconds())
		}
	}
	row("wall time, 200 partitions with answers of 5 ms", fmt.Sprintf("%.0f ms", median(times)*1e3), "at most 60 ms")
	return nil
}

// requestsPerTick counts the requests of a tick after RIDs are cached.
func requestsPerTick(string) error {
	for _, c := range []struct {
		what                               string
		containers, partitions, processors int
		reads                              int // of the change feed
	}{
		{"1 processor of 200 partitions", 1, 200, 1, 200},
		{"100 processors in one lease container", 100, 4, 1, 400},
		{"2 processors at one position of 200 partitions", 1, 200, 2, 200},
	} {
		s, err := startStandIn(c.containers, c.partitions, c.processors, 0, 0)
		if err != nil {
			return err
		}
		processors, err := s.list()
		if err == nil {
			err = countRequests(s, c.what, c.reads, processors)
		}
		s.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func countRequests(s *standIn, what string, reads int, processors []estimator.Processor) error {
	e := estimator.New(concurrency, time.Now)
	if err := s.estimate(e, processors); err != nil {
		return err
	}
	requests, charge := 0, 0.0
	for _, l := range e.EstimateAll(context.Background(), processors) {
		requests += l.Requests
		charge += l.Charge
	}
	row("requests per tick, "+what, fmt.Sprint(requests), fmt.Sprintf("%d positions + the pages of 1 lease query", reads))
	row("charge per tick, "+what, fmt.Sprintf("%.0f RU", charge), "")
	return nil
}

// pollCost is the cost of a poll of the handler.
type pollCost struct {
	partitions int
	charge     float64 // RU
	resident   float64 // MiB, at its peak
	wall       time.Duration
}

// poll makes the handler poll all processors of the accounts once.
func poll(handler string, accounts ...*standIn) (pollCost, error) {
	folder, err := os.MkdirTemp("", "feedscale-bench")
	if err != nil {
		return pollCost{}, err
	}
	defer os.RemoveAll(folder)
	c := exec.Command(handler, "poll", "--output", "json")
	c.Dir = folder
	c.Env = append(os.Environ(), "FEEDSCALE_PROCESSORS="+document(accounts...))
	for n, s := range accounts {
		c.Env = append(c.Env, settingOf(n)+"="+s.connection)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	start := time.Now()
	if err := c.Start(); err != nil {
		return pollCost{}, err
	}
	resident := make(chan float64)
	go func() { resident <- peakOf(c.Process.Pid) }()
	if err := c.Wait(); err != nil {
		return pollCost{}, fmt.Errorf("polling: %w: %s", err, stderr.String())
	}
	p := pollCost{wall: time.Since(start), resident: <-resident}
	var result struct {
		Processors []struct {
			PartitionCount int
			RequestCharge  float64
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		return pollCost{}, err
	}
	for _, processor := range result.Processors {
		p.partitions += processor.PartitionCount
		p.charge += processor.RequestCharge
	}
	return p, nil
}

// peakOf returns the peak resident memory of a process in MiB, read until the process ends. The
// system's own figure is at least that of its parent.
func peakOf(pid int) (peak float64) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, line, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found { // the process has ended
			return peak
		}
		var kilobytes float64
		if _, err := fmt.Sscan(line, &kilobytes); err == nil {
			peak = kilobytes / 1024
		}
		time.Sleep(time.Millisecond)
	}
}

// memory measures the peak resident memory of the handler during a poll of 10,000 leases.
func memory(handler string) error {
	s, err := startStandIn(50, 200, 1, 0, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	p, err := poll(handler, s)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("resident memory, poll of %d leases", p.partitions), fmt.Sprintf("%.0f MiB", p.resident), "at most 128 MiB")
	row(fmt.Sprintf("wall time, poll of %d leases, from start to exit", p.partitions), fmt.Sprintf("%.0f ms", p.wall.Seconds()*1e3), "")
	return nil
}

// memoryOfLargeItems compares the peak resident memory of polls with documents of 2 MB and of polls
// with small ones. All partitions are read at once.
func memoryOfLargeItems(handler string) error {
	const partitions, megabytes = 64, 2
	for _, accounts := range []int{1, 2} {
		resident := make(map[int]float64)
		for _, bytes := range []int{0, megabytes << 20} {
			peak, err := residentOf(handler, accounts, partitions, bytes)
			if err != nil {
				return err
			}
			resident[bytes] = peak
		}
		above := resident[megabytes<<20] - resident[0]
		row(fmt.Sprintf("resident memory above idle, %d x %d x %d MB", accounts, partitions, megabytes), fmt.Sprintf("%.0f MiB", above), "at most 64 MiB")
	}
	return nil
}

// residentOf is the median peak of several polls of new accounts.
func residentOf(handler string, accounts, partitions, bytes int) (float64, error) {
	var all []*standIn
	defer func() {
		for _, s := range all {
			s.stop()
		}
	}()
	for range accounts {
		s, err := startStandIn(1, partitions, 1, 0, bytes)
		if err != nil {
			return 0, err
		}
		all = append(all, s)
	}
	var peaks []float64
	for range runs {
		p, err := poll(handler, all...)
		if err != nil {
			return 0, err
		}
		// Reading a kilobyte costs one request unit.
		if least := accounts * partitions * bytes / 1100; p.partitions != accounts*partitions || p.charge < float64(least) {
			return 0, fmt.Errorf("%d partitions were polled for %.0f RU, want %d for at least %d", p.partitions, p.charge, accounts*partitions, least)
		}
		peaks = append(peaks, p.resident)
	}
	return median(peaks), nil
}

// firstRequest measures the wall time from the start of serve to its first answer.
func firstRequest(handler string) error {
	var times []float64
	for range runs {
		elapsed, err := startToAnswer(handler)
		if err != nil {
			return err
		}
		times = append(times, elapsed.Seconds())
	}
	row("serve, from start to its first answer", fmt.Sprintf("%.0f ms", median(times)*1e3), "at most 100 ms")
	return nil
}

// emulatorReady measures the wall time from the start of feedscale emulate to the line that it prints last.
func emulatorReady(handler string) error {
	var times []float64
	for range runs {
		emulate := exec.Command(filepath.Join(filepath.Dir(handler), "feedscale"), "emulate", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0",
			"--container", "shop/orders:4", "--container", "shop/leases", "--queue", "scale-events")
		out, err := emulate.StdoutPipe()
		if err != nil {
			return err
		}
		start := time.Now()
		if err := emulate.Start(); err != nil {
			return err
		}
		lines, ready := bufio.NewScanner(out), false
		for !ready && lines.Scan() {
			ready = strings.HasPrefix(lines.Text(), "SERVICEBUS=")
		}
		times = append(times, time.Since(start).Seconds())
		_ = emulate.Process.Kill()
		_ = emulate.Wait()
		if !ready {
			return errors.New("the stand-ins did not say where they are")
		}
	}
	row("emulate, from start to ready", fmt.Sprintf("%.0f ms", median(times)*1e3), "at most 200 ms")
	return nil
}

func startToAnswer(handler string) (time.Duration, error) {
	folder, err := os.MkdirTemp("", "feedscale-bench")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	port, err := freeport.Find()
	if err != nil {
		return 0, err
	}
	s := &standIn{containers: 1, partitions: 1, processors: 1}
	serve := exec.Command(handler, "serve")
	serve.Dir = folder
	serve.Env = append(os.Environ(),
		settingOf(0)+"=AccountEndpoint=http://127.0.0.1:1/;AccountKey=a2V5;", "FEEDSCALE_PROCESSORS="+document(s),
		fmt.Sprintf("FUNCTIONS_CUSTOMHANDLER_PORT=%d", port))
	var output bytes.Buffer
	serve.Stdout, serve.Stderr = bufio.NewWriter(&output), &output
	start := time.Now()
	if err := serve.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	}()
	for deadline := start.Add(10 * time.Second); time.Now().Before(deadline); {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err == nil {
			response.Body.Close()
			return time.Since(start), nil
		}
		time.Sleep(time.Millisecond)
	}
	return 0, errors.New("serve did not answer within 10 s")
}

// size prints the size of the stripped handler.
func size(handler string) error {
	info, err := os.Stat(handler)
	if err != nil {
		return err
	}
	row("size of the stripped handler", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "at most 25 MB")
	return nil
}
