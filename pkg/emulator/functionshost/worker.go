package functionshost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/freeport"
)

const (
	readinessInterval = 25 * time.Millisecond
	exitRestart       = 200 // the exit code by which a handler asks to be restarted
	maxCrashes        = 3   // until the host stops
	crashInterval     = 30 * time.Minute
)

// worker keeps the handler's process: it starts it, waits until it answers, and
// applies the host's policy when it ends.
type worker struct {
	app    *app
	log    *log
	clock  *Clock
	port   int
	client *http.Client // speaks to the handler
	halt   func(func()) // takes the host down with the handler; calls back when the port is closed

	mu      sync.Mutex
	process *process      // the latest
	crashes []time.Time   // that count for the policy
	stopped error         // why there will be no further process; nil while there may be one
	changed chan struct{} // closed, and replaced, when any of the above changes
	ending  bool          // the host ends: an exit is no crash
	orphan  *os.Process   // the handler that was left behind
}

var (
	errClosed      = errors.New("the host has ended")
	errNoFunctions = errors.New("there is no function to run, so the host starts no handler")
)

// process is one run of the executable.
type process struct {
	handler *os.Process
	parent  *exec.Cmd     // what started the handler, and ends with its exit code
	output  []*os.File    // what the host reads of the handler's stdout and stderr
	replace bool          // the host kills it to start another: its exit is no crash
	ready   bool          // it has answered
	exited  chan struct{} // closed once the policy has been applied to its end
}

func newWorker(a *app, l *log, clock *Clock, halt func(func())) (*worker, error) {
	port := a.port
	if port == 0 {
		free, err := freeport.Find()
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		port = free
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}}
	if a.forward {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &worker{app: a, log: l, clock: clock, port: port, client: client, halt: halt, changed: make(chan struct{})}, nil
}

// url is where the handler has to listen.
func (w *worker) url(path string) string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port)) + path
}

// environment is all that the handler gets: the whole environment of the host, and the variables
// of a custom handler (Workers/Http/HttpWorkerProcess.cs:58-62).
func (w *worker) environment(workerID string) []string {
	variables := map[string]string{
		"FUNCTIONS_CUSTOMHANDLER_PORT":      strconv.Itoa(w.port),
		"FUNCTIONS_CUSTOMHANDLER_WORKER_ID": workerID,
		"FUNCTIONS_HTTPWORKER_PORT":         strconv.Itoa(w.port),
		"FUNCTIONS_HTTPWORKER_ID":           workerID,
		"FUNCTIONS_APP_ROOT_PATH":           w.app.root,
	}
	var environment []string
	for name, value := range w.app.settings {
		if _, own := variables[name]; !own {
			environment = append(environment, name+"="+value)
		}
	}
	for name, value := range variables {
		environment = append(environment, name+"="+value)
	}
	slices.Sort(environment)
	return environment
}

// start runs the executable once more. Its end is handled in the background.
func (w *worker) start() {
	workerID := newGUID()
	a := w.app
	arguments := commandLine(a.arguments, withPort(a.settings, w.port))
	if a.workerPath != "" {
		arguments = append(arguments, a.workerPath)
	}
	arguments = append(arguments, commandLine(a.workerArguments, withPort(a.settings, w.port))...)

	command := exec.Command(a.executable, arguments...)
	command.Dir = a.workingDirectory
	command.Env = w.environment(workerID)
	p := &process{parent: command, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that made it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		printed, err := w.launch(p)
		started <- err
		if err != nil {
			return
		}
		_ = command.Wait() // the exit code says it
		select {
		case <-printed:
		case <-time.After(time.Second): // a grandchild may keep the pipes open
		}
		p.closeOutput()
		<-printed
		w.handleExit(p)
		close(p.exited)
	}()
	if err := <-started; err != nil {
		w.stopHost(fmt.Errorf("starting %s: %w", a.executable, err))
		return
	}
	go w.awaitAnswer(p)
}

// launch starts the process and logs what it prints until that ends.
func (w *worker) launch(p *process) (printed <-chan struct{}, err error) {
	var writers []*os.File
	defer func() {
		for _, file := range writers {
			_ = file.Close() // the handler has its own
		}
	}()
	for range 2 {
		reader, writer, err := os.Pipe()
		if err != nil {
			p.closeOutput()
			return nil, err
		}
		p.output, writers = append(p.output, reader), append(writers, writer)
	}
	p.parent.Stdout, p.parent.Stderr = writers[0], writers[1]
	if p.handler, err = startWithParent(p.parent); err != nil {
		p.closeOutput()
		return nil, err
	}
	w.change(func() {
		w.process = p
		if w.ending {
			_ = p.handler.Kill()
		}
	})
	var readers sync.WaitGroup
	for i, level := range []func(string) Level{stdoutLevel, stderrLevel(w.app.stderrIsError)} {
		c := &console{log: w.log, level: level}
		readers.Go(func() {
			_, _ = io.Copy(c, p.output[i]) // it ends with the handler, or when it is left behind
			c.flush()
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	return done, nil
}

func (p *process) closeOutput() {
	for _, file := range p.output {
		_ = file.Close()
	}
}

// withPort adds the variable that arguments may name besides the settings.
func withPort(settings map[string]string, port int) map[string]string {
	variables := map[string]string{"FUNCTIONS_CUSTOMHANDLER_PORT": strconv.Itoa(port)}
	for name, value := range settings {
		variables[name] = value
	}
	return variables
}

// awaitAnswer asks until the process answers anything at all.
func (w *worker) awaitAnswer(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), w.app.startTimeout)
	defer cancel()
	ticker := time.NewTicker(readinessInterval)
	defer ticker.Stop()
	for {
		if w.ping(ctx) == nil {
			w.change(func() { p.ready = true })
			return
		}
		select {
		case <-ticker.C:
		case <-p.exited:
			return
		case <-ctx.Done():
			w.stopHost(fmt.Errorf("the handler did not answer on port %d (FUNCTIONS_CUSTOMHANDLER_PORT) within %s", w.port, w.app.startTimeout))
			return
		}
	}
}

func (w *worker) ping(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url("/"), nil)
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// handleExit applies the host's policy to the end of a process
// (Workers/ProcessManagement/WorkerProcess.cs:156-196,
// Workers/Http/HttpFunctionInvocationDispatcher.cs:145-173): exit code 0 starts no other handler,
// 200 starts one, and any other code also does, except at the third within 30 minutes.
func (w *worker) handleExit(p *process) {
	w.client.CloseIdleConnections()
	code := exitCode(p.parent.ProcessState)
	w.mu.Lock()
	ending, replace, stopped := w.ending, p.replace, w.stopped != nil
	w.mu.Unlock()
	switch {
	case ending || stopped:
	case replace || code == exitRestart:
		w.log.add(Information, CategoryHost, "restarting the handler")
		w.change(func() { p.ready = false })
		w.start()
	case code == 0:
		w.stop(errors.New("the handler exited with code 0, after which the host never restarts it: exit with 1 on a fatal condition"))
	default:
		w.log.add(Error, CategoryHost, "%s exited with code %d", w.app.executable, code)
		if w.countCrash() >= maxCrashes {
			w.log.add(Error, CategoryHost, "Exceeded http worker restart retry count. Shutting down Functions Host")
			w.stopHost(fmt.Errorf("the handler exited with code %d, %d times in a row: the host stops%s", code, maxCrashes, w.lastErrors()))
			return
		}
		w.change(func() { p.ready = false })
		w.start()
	}
}

// countCrash counts the crashes in a row, each at most 30 minutes after the one before.
func (w *worker) countCrash() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if n := len(w.crashes); n > 0 && now.Sub(w.crashes[n-1]) > crashInterval {
		w.crashes = nil
	}
	w.crashes = append(w.crashes, now)
	return len(w.crashes)
}

// lastErrors are the last lines of stderr, which usually say why.
func (w *worker) lastErrors() string {
	var texts []string
	for _, line := range w.log.snapshot() {
		if line.Category == CategoryConsole && line.Level == Error {
			texts = append(texts, line.Text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts[max(0, len(texts)-3):], "; ")
}

// stop records that there will be no further process.
func (w *worker) stop(reason error) {
	w.log.add(Error, CategoryHost, "%v", reason)
	w.change(func() { w.stopped = reason })
}

// stopHost takes the host down for a reason. The port is closed before anybody can read the reason.
func (w *worker) stopHost(reason error) { w.halt(func() { w.stop(reason) }) }

// change changes the state and wakes those that wait for it.
func (w *worker) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// awaitReady waits until the latest process answers. It sends a request, because the end of a
// process shows in its connections first.
func (w *worker) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(readinessInterval)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		ready, stopped, changed := w.process != nil && w.process.ready, w.stopped, w.changed
		w.mu.Unlock()
		switch {
		case stopped != nil:
			return stopped
		case ready && w.ping(ctx) == nil:
			return nil
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the handler: %w", ctx.Err())
		}
	}
}

// kill sends the running process SIGKILL, and returns after the policy was applied to its end. With
// replace, the host itself kills it, and it does not count as a crash.
func (w *worker) kill(replace bool) {
	w.mu.Lock()
	p := w.process
	if p != nil {
		p.replace = replace
	}
	w.mu.Unlock()
	if p == nil {
		return
	}
	_ = p.handler.Kill() // it may have ended already
	<-p.exited
}

// signal sends the running process a signal, and does not wait for the result.
func (w *worker) signal(s os.Signal) error {
	p := w.latest()
	if p == nil {
		return errors.New("there is no handler")
	}
	return p.handler.Signal(s)
}

// close ends the process for good, even one that is being started. Or it leaves the process behind,
// without a parent and without a reader of its output.
func (w *worker) close(leave bool) {
	w.change(func() {
		w.ending = true
		if w.stopped == nil {
			w.stopped = errClosed
		}
	})
	if p := w.latest(); leave && p != nil && w.leave(p) {
		return
	}
	for {
		before := w.latest()
		w.kill(false)
		if w.latest() == before {
			break
		}
	}
	w.client.CloseIdleConnections()
}

// leave lets a process go on without the host, and reports whether there still was one.
func (w *worker) leave(p *process) bool {
	select {
	case <-p.exited:
		return false
	default:
	}
	w.mu.Lock()
	w.orphan = p.handler
	w.mu.Unlock()
	p.closeOutput()
	endParent(p)
	w.client.CloseIdleConnections()
	return true
}

func (w *worker) latest() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process
}
