package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// process is a process of feedscale that the test kills and something restarts.
type process interface {
	// tick starts one, or waits for the next, and returns at its end, successful or not.
	tick(context.Context)
	// signal sends a signal and does not wait for the end of the process.
	signal(syscall.Signal)
	// revive returns when a process answers: a new one if the last got a signal.
	revive()
	get(path string) (status int, body []byte, err error)
	pid() int // 0 if there is none
	// printed returns what the process and its host logged since the last call.
	printed() string
}

// hosted is the handler under a host. The test fires its timer.
type hosted struct {
	world *chaos
	*functionshost.Host
	// stands still, except for half an hour after a crash, in which the host counts crashes
	clock  *functionshost.Clock
	read   int // lines of its log
	killed int // number of kills
	mu     sync.Mutex
	sent   syscall.Signal // whose process has not ended yet; 0 = none
	sentAt time.Time
	ended  int // how often a handler ended without an error
}

func newHosted(w *chaos) *hosted {
	clock := functionshost.NewClock(time.Now())
	return &hosted{world: w, clock: clock, Host: startHost(w.t, functionshost.Options{Settings: w.settings, Clock: clock})}
}

func (h *hosted) tick(ctx context.Context) {
	_, _ = h.Timer(ctx, "poll", functionshost.Tick{}) // it may fail, as the faults intend
}

func (h *hosted) signal(s syscall.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sent == 0 && h.Signal(s) == nil {
		h.sent, h.sentAt = s, time.Now()
	}
}

func (h *hosted) revive() {
	h.mu.Lock()
	sent := h.sent
	h.sent = 0
	h.mu.Unlock()
	switch sent {
	case syscall.SIGKILL:
		h.killed++
		h.awaitEnds("exited with code 137", h.killed)
		h.clock.Advance(31 * time.Minute)
	case syscall.SIGTERM:
		h.ended++
		h.awaitEnds("restarting the handler", h.ended)
		if took := time.Since(h.sentAt); took > drained+testworld.Busy {
			h.world.breaks("a handler took %s to end after SIGTERM", took)
		}
	}
	ctx, cancel := context.WithTimeout(h.world.t.Context(), testworld.Deadline)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		h.world.breaks("a handler is not started again: %v", err)
	}
	if n := logged(h.Host, "exited with code"); n != h.killed {
		h.world.breaks("%d handlers ended with an error, and %d were killed", n, h.killed)
	}
}

func (h *hosted) awaitEnds(line string, n int) {
	for deadline := time.Now().Add(testworld.Deadline); logged(h.Host, line) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.world.breaks("a signal did not end the handler: there is no %q", line)
			return
		}
	}
}

func (h *hosted) get(path string) (int, []byte, error) {
	return fetch(h.URL()+path, h.MasterKey())
}

func (h *hosted) pid() int {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.HandlerURL(), "http://"))
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		environment, _ := os.ReadFile(file)
		executable, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if filepath.Base(executable) == "handler" && bytes.Contains(environment, []byte("FUNCTIONS_CUSTOMHANDLER_PORT="+port+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

func (h *hosted) printed() string {
	all := h.Logs()
	var text strings.Builder
	for _, line := range all[h.read:] {
		fmt.Fprintln(&text, line.Text)
	}
	h.read = len(all)
	return text.String()
}

// standalone is `feedscale run`, whose own timer ticks every second.
type standalone struct {
	world    *chaos
	settings map[string]string
	folder   string
	log      output
	read     int
	ticks    atomic.Int64

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
	sent    syscall.Signal
	sentAt  time.Time
}

func newStandalone(w *chaos) *standalone {
	settings := map[string]string{"FEEDSCALE_LISTEN": testworld.FreeAddress(w.t)}
	for name, value := range w.settings {
		settings[name] = value
	}
	s := &standalone{world: w, settings: settings, folder: w.folder}
	s.start()
	w.t.Cleanup(func() {
		_ = s.command.Process.Kill()
		<-s.ended
	})
	return s
}

func (s *standalone) Write(text []byte) (int, error) {
	s.ticks.Add(int64(bytes.Count(text, []byte(`"msg":"tick"`))))
	return s.log.Write(text)
}

// start returns when the process answers. Before that it has no handler for signals.
func (s *standalone) start() {
	command := prepare(s.world.t, s.folder, s.settings, "run")
	command.Stdout, command.Stderr = s, s
	ended := make(chan struct{})
	s.mu.Lock()
	s.command, s.ended = command, ended
	testworld.Must(s.world.t, command.Start())
	s.mu.Unlock()
	go func() {
		_ = command.Wait() // the status is checked elsewhere
		close(ended)
	}()
	for deadline := time.Now().Add(testworld.Deadline); ; time.Sleep(5 * time.Millisecond) {
		if _, _, err := s.get("/api/metrics"); err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.world.breaks("run does not answer: %s", s.log.String())
			return
		}
	}
}

func (s *standalone) tick(ctx context.Context) {
	before, late := s.ticks.Load(), time.After(4*time.Second)
	for looks := time.Tick(5 * time.Millisecond); s.ticks.Load() == before; {
		select {
		case <-looks:
		case <-late:
			return
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *standalone) signal(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == 0 && s.command.Process.Signal(signal) == nil {
		s.sent, s.sentAt = signal, time.Now()
	}
}

func (s *standalone) revive() {
	s.mu.Lock()
	sent := s.sent
	s.mu.Unlock()
	if sent == 0 {
		select {
		case <-s.ended:
			s.world.breaks("run ended by itself with status %d: %s", s.command.ProcessState.ExitCode(), s.log.String())
		default:
			return
		}
	} else {
		select {
		case <-s.ended:
		case <-time.After(testworld.Deadline):
			s.world.breaks("signal %d does not end run", sent)
		}
		if took := time.Since(s.sentAt); sent == syscall.SIGTERM && took > drained+testworld.Busy {
			s.world.breaks("run took %s to end after SIGTERM", took)
		}
		if status := s.command.ProcessState.ExitCode(); sent == syscall.SIGTERM && status != 0 {
			s.world.breaks("run ended with status %d after SIGTERM", status)
		}
	}
	s.mu.Lock()
	s.sent = 0
	s.mu.Unlock()
	s.start()
}

func (s *standalone) get(path string) (int, []byte, error) {
	return fetch("http://"+s.settings["FEEDSCALE_LISTEN"]+path, "")
}

func (s *standalone) pid() int { return s.command.Process.Pid }

func (s *standalone) printed() string {
	all := s.log.String()
	since := all[s.read:]
	s.read = len(all)
	return since
}

// fetch reads a page, with a key if there is one.
func fetch(url, key string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("x-functions-key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// usage is the resources of a process, according to the kernel.
type usage struct {
	descriptors, threads int
	memory               int // resident, in KiB
}

func usageOf(pid int) (u usage, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(folder, "fd"))
	if err != nil {
		return u, err
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return u, err
	}
	u.descriptors = len(open)
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			_, err = fmt.Sscan(value, &u.memory)
		case "Threads":
			_, err = fmt.Sscan(value, &u.threads)
		}
		if err != nil {
			return u, err
		}
	}
	if u.memory == 0 {
		return u, errors.New("the process has no memory")
	}
	return u, nil
}
