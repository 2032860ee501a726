package functionshost

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Version is that of the host which is imitated; it stands in the headers of every request to the
// handler, in four parts (the file version of the host's assembly, seen on host 4.1037).
const Version = "4.1037.0.0"

// Options say which function app is run, and how.
type Options struct {
	Root string // the staged folder, with host.json

	// Settings are the app settings. With Environment they are the host's environment: what the
	// host reads %NAME% from, and what the handler inherits.
	Settings map[string]string

	// Environment is what the host has in its environment besides the settings, as NAME=value; nil
	// = what this process has. A setting wins over a variable of the same name.
	Environment []string

	// Storage is where the host finds the locks and the status of its timers. Without one no timer
	// fires by itself: Timer fires them, so that the test has the ticks in its hand.
	Storage *Storage

	// Receive has Service Bus triggers receive from the queues of their connections. Without it
	// Deliver hands them messages.
	Receive bool

	Clock *Clock // nil = the wall clock
	// which slots of a timer come early, and by how much; nil = the same ones in every run
	Random *mathrand.Rand

	DrainTime time.Duration // of a host that is stopped; 0 = 11.5 s, as seen on the host
	// from functionTimeout to the end of the handler; 0 = 2 s, as seen on the host
	KillDelay time.Duration
}

// Host is a running function app.
type Host struct {
	app       *app
	log       *log
	clock     *Clock
	storage   *Storage
	drainTime time.Duration
	killDelay time.Duration
	worker    *worker
	front     *http.Server
	url       string
	master    string
	keys      map[string]string // by function name
	inFlight  atomic.Int64      // invocations

	background    context.Context // of invocations; ends with the host
	end           context.CancelFunc
	stopListening context.CancelFunc
	stop          sync.Once

	mu     sync.Mutex
	random *mathrand.Rand
}

// Start reads the function app, starts its executable, and waits until that answers. It returns
// an error for everything for which the host would not start, and also where the handler does
// not, with what that wrote to stderr last. A function for which the app is wrong is in error,
// which FunctionErrors tells; the others run.
func Start(ctx context.Context, o Options) (*Host, error) {
	if o.DrainTime == 0 {
		o.DrainTime = drainTime
	}
	if o.KillDelay == 0 {
		o.KillDelay = killDelay
	}
	if o.Random == nil {
		o.Random = mathrand.New(mathrand.NewPCG(1, 1))
	}
	if o.Storage != nil {
		if err := o.Storage.awaitStart(ctx, o.Clock); err != nil {
			return nil, fmt.Errorf("waiting for the storage: %w", err)
		}
	}
	a, err := readApp(o.Root, environment(o), o.Clock.Now())
	if err != nil {
		return nil, err
	}
	h := &Host{
		app: a, log: &log{}, clock: o.Clock, storage: o.Storage, random: o.Random,
		drainTime: o.DrainTime, killDelay: o.KillDelay, master: newKey(), keys: map[string]string{},
	}
	for _, f := range a.functions {
		h.keys[f.name] = newKey()
	}
	for name, err := range a.inError {
		h.log.add(Error, CategoryHost, "The '%s' function is in error: %v", name, err)
	}
	h.background, h.end = context.WithCancel(context.Background())
	listening, stopListening := context.WithCancel(h.background)
	h.stopListening = stopListening
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the host's port: %w", err)
	}
	h.url = "http://" + listener.Addr().String()
	h.front = &http.Server{Handler: http.HandlerFunc(h.serve), ReadHeaderTimeout: 10 * time.Second}
	h.worker, err = newWorker(a, h.log, h.clock, h.halt)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	clients := map[*function]*azservicebus.Client{}
	for _, f := range a.functions {
		if o.Receive && f.trigger.is("serviceBusTrigger") && !f.disabled {
			if clients[f], err = h.connect(f); err != nil {
				_ = listener.Close()
				return nil, err
			}
		}
	}
	go func() { _ = h.front.Serve(listener) }() // it ends with the host
	if len(a.functions) == 0 {
		// no handler either (Workers/Http/HttpFunctionInvocationDispatcher.cs, InitializeAsync)
		h.worker.stop(errNoFunctions)
		return h, nil
	}
	h.worker.start()
	if err := h.worker.awaitReady(ctx); err != nil {
		h.Close()
		return nil, err
	}
	for f, client := range clients {
		go h.receive(listening, f, client)
	}
	if h.storage != nil {
		for _, f := range a.functions {
			if f.timer != nil && !f.disabled {
				go h.listen(listening, f)
			}
		}
	}
	return h, nil
}

// environment is that of the host.
func environment(o Options) map[string]string {
	variables := o.Environment
	if variables == nil {
		variables = os.Environ()
	}
	all := map[string]string{}
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	maps.Copy(all, o.Settings)
	return all
}

// newKey makes a key as the host does: random bytes in URL-safe base64.
func newKey() string {
	var b [40]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.URLEncoding.EncodeToString(b[:])
}

// Kill sends the handler SIGKILL from outside, as an operator or the kernel would. The host treats
// that as a crash: it starts another handler, except after the third crash in 30 minutes. Ready
// waits for the new one.
func (h *Host) Kill() { h.worker.kill(false) }

// Signal sends the handler a signal from outside. The host then applies its policy to the exit.
func (h *Host) Signal(s os.Signal) error { return h.worker.signal(s) }

// Ready waits until the handler answers. If no handler will start again, it fails with the reason.
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

// Functions are the names of the functions that run, in order.
func (h *Host) Functions() []string {
	names := make([]string, len(h.app.functions))
	for i, f := range h.app.functions {
		names[i] = f.name
	}
	return names
}

// FunctionErrors say by name why a function does not run.
func (h *Host) FunctionErrors() map[string]error { return maps.Clone(h.app.inError) }

// find looks a function up; its name counts in any case, as in the host.
func (h *Host) find(name string) *function {
	for _, f := range h.app.functions {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return nil
}
