package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/freeport"
)

// scale measures ticks of the handler under a Functions host by the number of leases: few
// processors with many leases each, and processors with ten. Each row has a new handler and a new
// state. The first tick finds no state, so the figures are those of the later ticks.
func scale(handler string) error {
	fmt.Printf("\n%-8s %10s %9s %9s %10s %10s %9s %9s %9s\n", "leases", "processors", "wall", "CPU", "CPU/lease", "peak", "at rest", "requests", "RU")
	for _, c := range []struct {
		processors, leases int // leases of each processor
		wanted             float64
	}{
		{1, 10, 0}, {1, 100, 0}, {10, 10, 0}, {1, 1_000, 0}, {100, 10, 0}, {1, 10_000, 128}, {1_000, 10, 128}, {500, 200, 512}, {10_000, 10, 512},
	} {
		if err := scaleRow(handler, c.processors, c.leases, c.wanted); err != nil {
			return fmt.Errorf("%d processors of %d leases: %w", c.processors, c.leases, err)
		}
	}
	return nil
}

func scaleRow(handler string, processors, leases int, wanted float64) error {
	s, err := startStandIn(processors, leases, 1, 0, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	h, err := startHandler(handler, s)
	if err != nil {
		return err
	}
	defer h.stop()
	if err := h.tick(); err != nil {
		return err
	}
	const ticks = 2
	before, began, last := h.cpu(), time.Now(), time.Time{}
	for range ticks {
		last = time.Now()
		if err := h.tick(); err != nil {
			return err
		}
	}
	wall, cpu := time.Since(began)/ticks, (h.cpu()-before)/ticks
	peak, rest := h.status("VmHWM"), h.status("VmRSS")
	c, err := h.costs(last)
	if err != nil {
		return err
	}
	goal := ""
	if wanted > 0 {
		goal = fmt.Sprintf("   at most %.0f MiB", wanted)
	}
	if c.measured < processors {
		goal += fmt.Sprintf("   the last tick measured %d processors alone", c.measured)
	}
	n := processors * leases
	fmt.Printf("%-8d %10d %6.0f ms %6.0f ms %7.0f µs %6.0f MiB %5.0f MiB %9.0f %9.0f%s\n", n, processors,
		wall.Seconds()*1e3, cpu*1e3, cpu/float64(n)*1e6, peak, rest, c.requests, c.charge, goal)
	return nil
}

// handlerProcess is a handler process, started as a Functions host does.
type handlerProcess struct {
	command *exec.Cmd
	folder  string
	url     string
	output  bytes.Buffer
}

// startHandler starts a handler whose next slot is hours away, so that no tick is cut short and no
// reading expires on a slow machine.
func startHandler(handler string, s *standIn) (*handlerProcess, error) {
	folder, err := os.MkdirTemp("", "feedscale-bench")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "processors.yaml"), []byte(document(s)), 0o600); err != nil {
		return nil, err
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	h := &handlerProcess{command: exec.Command(handler, "serve"), folder: folder, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	h.command.Dir = folder
	h.command.Env = append(os.Environ(), settingOf(0)+"="+s.connection, "FEEDSCALE_EVENT_HEARTBEAT=0", "FEEDSCALE_TICK_TIMEOUT=9m",
		"FEEDSCALE_TIMER_SCHEDULE=0 0 0 1 1 *", fmt.Sprintf("FUNCTIONS_CUSTOMHANDLER_PORT=%d", port))
	h.command.Stderr = &h.output
	if err := h.command.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		response, err := http.Get(h.url)
		if err == nil {
			response.Body.Close()
			return h, nil
		}
		if time.Now().After(deadline) {
			h.stop()
			return nil, fmt.Errorf("serve did not answer: %s", h.output.String())
		}
	}
}

func (h *handlerProcess) stop() {
	_ = h.command.Process.Kill()
	_ = h.command.Wait()
	os.RemoveAll(h.folder)
}

// tick is one invocation of the timer function.
func (h *handlerProcess) tick() error {
	response, err := http.Post(h.url+"/poll", "application/json", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the tick failed: %s", h.output.String())
	}
	return nil
}

// status returns a memory figure of the process in MiB.
func (h *handlerProcess) status(name string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.command.Process.Pid))
	_, line, _ := strings.Cut(string(text), name+":")
	var kilobytes float64
	_, _ = fmt.Sscan(line, &kilobytes)
	return kilobytes / 1024
}

// cpu returns the CPU seconds of the process so far, user and system.
func (h *handlerProcess) cpu() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.command.Process.Pid))
	_, behindName, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behindName)
	const user, system, perSecond = 11, 12, 100 // proc(5); a clock tick is a hundredth of a second
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseFloat(fields[user], 64)
	s, _ := strconv.ParseFloat(fields[system], 64)
	return (u + s) / perSecond
}

var tickLine = regexp.MustCompile(`(?m)^feedscale_processor_(poll_requests|poll_request_charge|complete|last_measured_timestamp_seconds)\{.*\} (\S+)$`)

// costs are the metrics of the last tick, from /api/metrics.
type costs struct {
	requests, charge float64 // requests to the account, and their RU
	measured         int     // processors that are fully known, and that this tick measured
}

// costs returns the metrics of a tick that began at a time.
func (h *handlerProcess) costs(began time.Time) (c costs, err error) {
	response, err := http.Get(h.url + "/api/metrics")
	if err != nil {
		return c, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	complete, fresh := 0, 0
	for _, found := range tickLine.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.ParseFloat(found[2], 64)
		switch found[1] {
		case "poll_requests":
			c.requests += n
		case "poll_request_charge":
			c.charge += n
		case "complete":
			complete += int(n)
		default:
			if n >= float64(began.Unix()) {
				fresh++
			}
		}
	}
	c.measured = min(complete, fresh)
	return c, err
}
