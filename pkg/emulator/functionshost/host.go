package functionshost

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Version is that of the host which is imitated; it stands in the headers of
// every request to the handler.
const Version = "4.1052.200"

// Options say which function app is run, and how.
type Options struct {
	Root string // the staged folder, with host.json

	// Settings are the app settings. They are the whole environment of the
	// handler, save what the host adds: nothing of the test's own is inherited.
	Settings map[string]string

	Now func() time.Time // the host's clock, for timers and the crash policy; nil = time.Now
}

// Host is a running function app.
type Host struct {
	app    *app
	log    *log
	now    func() time.Time
	worker *worker
	front  *http.Server
	url    string
	master string
	keys   map[string]string // by function name

	background context.Context // of invocations nobody waits for; ends with Close
	end        context.CancelFunc
}

// Start reads the function app, starts its executable, and waits until that
// answers. It returns an error for everything for which the host would not
// start, or would start without one of the functions, with what the handler
// wrote to stderr last.
func Start(ctx context.Context, o Options) (*Host, error) {
	a, err := readApp(o.Root, o.Settings)
	if err != nil {
		return nil, err
	}
	h := &Host{app: a, log: &log{}, now: o.Now, master: newKey(), keys: map[string]string{}}
	if h.now == nil {
		h.now = time.Now
	}
	for _, f := range a.functions {
		h.keys[f.name] = newKey()
		if f.timer != nil {
			f.timer.arm(h.now())
		}
	}
	h.background, h.end = context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the host's port: %w", err)
	}
	h.url = "http://" + listener.Addr().String()
	h.front = &http.Server{Handler: h.handler(), ReadHeaderTimeout: 10 * time.Second}
	h.worker, err = newWorker(a, h.log, h.now, func() { _ = h.front.Close() })
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	go func() { _ = h.front.Serve(listener) }() // it ends with Close
	h.worker.start()
	if err := h.worker.awaitReady(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// newKey makes a key as the host does: random bytes in URL-safe base64.
func newKey() string {
	var b [40]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.URLEncoding.EncodeToString(b[:])
}

// Close kills the handler, as the host does: there is no graceful end. It
// returns once the process is gone.
func (h *Host) Close() {
	h.end()
	_ = h.front.Close()
	h.worker.close()
}

// Kill kills the handler with SIGKILL from outside, as an operator or the
// kernel would. For the host that is a crash: it starts another one, unless
// it was the third in 30 minutes. Ready waits for the new one.
func (h *Host) Kill() { h.worker.kill(false) }

// Ready waits until the handler answers, and fails where there will be none
// any more, with the reason.
func (h *Host) Ready(ctx context.Context) error { return h.worker.awaitReady(ctx) }

// URL is the base URL of the host's front, without a slash at its end.
func (h *Host) URL() string { return h.url }

// HandlerURL is the base URL on which the handler itself was told to listen.
func (h *Host) HandlerURL() string { return strings.TrimSuffix(h.worker.url("/"), "/") }

// Key is the function key of a function, "" where there is no such function.
func (h *Host) Key(function string) string {
	if f := h.find(function); f != nil {
		return h.keys[f.name]
	}
	return ""
}

// MasterKey opens every function, and alone /admin.
func (h *Host) MasterKey() string { return h.master }

// Logs is all that was logged so far, in order within one stream.
func (h *Host) Logs() []LogLine { return h.log.snapshot() }

// Functions are the names of the functions that were found, in order.
func (h *Host) Functions() []string {
	names := make([]string, len(h.app.functions))
	for i, f := range h.app.functions {
		names[i] = f.name
	}
	return names
}

// find looks a function up; its name counts in any case, as in the host.
func (h *Host) find(name string) *function {
	for _, f := range h.app.functions {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return nil
}
