package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
)

// waiting is a line on the terminal of standard error, while something takes its time.
type waiting struct {
	what func() string
	stop chan struct{}
	done chan struct{}
}

// waitFor shows what is waited for, once that takes longer than a second, until the end. what is called
// from another goroutine.
func waitFor(env Env, what func() string) *waiting {
	w := &waiting{what: what, stop: make(chan struct{}), done: make(chan struct{})}
	width, ok := env.errTerminal()
	if !ok {
		close(w.done)
		return w
	}
	go func() {
		defer close(w.done)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-w.stop:
				if seconds > 1 {
					wipe(env)
				}
				return
			case <-second.C:
				line := fmt.Sprintf("waiting for %s, %ds; Ctrl-C ends it", what(), seconds)
				env.draw("\r\x1b[K" + console.Style{Width: width}.Cut(line))
			}
		}
	}()
	return w
}

// wipe empties the line that the cursor of a terminal stands in.
func wipe(env Env) {
	if _, ok := env.errTerminal(); ok {
		env.draw("\r\x1b[K")
	}
}

// end wipes the line.
func (w *waiting) end() {
	close(w.stop)
	<-w.done
}

// interrupted is the Failure of what a signal ended; nil where none did.
func (w *waiting) interrupted(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return Incomplete(errors.New("interrupted while waiting for " + w.what()))
}

// await runs what takes its time, and says meanwhile what it waits for. After a signal the error is the
// Failure of it.
func await[T any](ctx context.Context, env Env, what string, run func() (T, error)) (T, error) {
	w := waitFor(env, func() string { return what })
	value, err := run()
	w.end()
	if interrupted := w.interrupted(ctx); interrupted != nil {
		err = interrupted
	}
	return value, err
}

// ahead is what a poll still waits for.
type ahead struct {
	mu       sync.Mutex
	accounts map[string]string // of the processors that are not decided, by name
	all      int
}

func newAhead(c config.Config, names []string) *ahead {
	a := &ahead{accounts: make(map[string]string)}
	for _, p := range c.Processors {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			a.accounts[p.Name] = "account " + p.Connection.Host
		}
	}
	a.all = len(a.accounts)
	return a
}

// advance takes up what a tick tells of a processor.
func (a *ahead) advance(processor string, decided bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if decided {
		delete(a.accounts, processor)
	}
}

// String names what is waited for.
func (a *ahead) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	accounts := slices.Compact(slices.Sorted(maps.Values(a.accounts)))
	if len(accounts) == 0 {
		return "what is decided to be stored and published"
	}
	text := accounts[0]
	if more := len(accounts) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if a.all > 1 {
		text += fmt.Sprintf(" (%d of %d processors)", len(a.accounts), a.all)
	}
	return text
}
