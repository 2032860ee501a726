package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// waitLine is a line on the terminal of standard error, while something takes its time.
type waitLine struct {
	what func() string
	end  func() // wipes the line
}

// waitFor shows what is waited for, once that takes longer than a second, until the end. what is called
// from another goroutine.
func waitFor(env Env, what func() string) *waitLine {
	width, ok := env.errTerminal()
	if !ok {
		return &waitLine{what, func() {}}
	}
	stop := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-stop:
				if seconds > 1 {
					wipe(env)
				}
				return
			case <-second.C:
				line := fmt.Sprintf("waiting for %s, %ds; Ctrl-C ends it", what(), seconds)
				env.draw("\r\x1b[K" + console.Style{Width: width}.Cut(line))
			}
		}
	})
	return &waitLine{what, func() {
		close(stop)
		showing.Wait()
	}}
}

// wipe empties the line that the cursor of a terminal stands in.
func wipe(env Env) {
	if _, ok := env.errTerminal(); ok {
		env.draw("\r\x1b[K")
	}
}

// interrupted is the Failure of what a signal ended; nil where none did.
func (w *waitLine) interrupted(ctx context.Context) error {
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
