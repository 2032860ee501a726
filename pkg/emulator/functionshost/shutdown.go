package functionshost

import (
	"context"
	"os"
	"time"
)

// drainTime is how long a host takes to end after SIGTERM, regardless of its work: 11 to 12 s, seen
// on host 4.1037.
const drainTime = 11500 * time.Millisecond

// Stop ends the host as SIGTERM does, and returns when it is gone, after DrainTime. Its port
// closes and its timers stop at once, and what runs may end. Then the handler is killed with
// SIGKILL (Workers/ProcessManagement/WorkerProcess.cs:254-283), but in the middle of an invocation
// it is left behind (seen on host 4.1037): Orphan is that process.
func (h *Host) Stop() {
	h.stop.Do(func() {
		drained, stop := h.clock.after(h.drainTime)
		defer stop()
		h.beginStop()
		select {
		case <-drained:
		case <-h.background.Done():
			return // closed meanwhile
		}
		h.gone(h.inFlight.Load() > 0)
	})
}

// beginStop takes no more requests and fires no more timers.
func (h *Host) beginStop() {
	h.log.add(Information, CategoryHost, "Application is shutting down...")
	h.stopListening()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.front.Shutdown(ended) // closes the port, and does not wait for the requests that run
}

// halt is the end of a host that can no longer have a handler
// (IApplicationLifetime.StopApplication). It calls closed when the port is closed.
func (h *Host) halt(closed func()) {
	h.beginStop()
	closed()
	go h.Stop()
}

// Crash ends the host itself as SIGKILL does: nothing is drained, no lock released, and the
// handler is left behind.
func (h *Host) Crash() { h.gone(true) }

// Close ends everything that a test has started, at once: the host, its handler, and a handler that
// was left behind. Other hosts on the same Storage see it as a kill.
func (h *Host) Close() { h.gone(false) }

// Orphan is the handler that Stop or Crash left behind, nil if there is none. It may have ended
// since. Close kills it.
func (h *Host) Orphan() *os.Process {
	h.worker.mu.Lock()
	defer h.worker.mu.Unlock()
	return h.worker.orphan
}

// gone ends the host now, with its handler or without.
func (h *Host) gone(leaveHandler bool) {
	h.end()
	_ = h.front.Close()
	h.worker.close(leaveHandler)
}
