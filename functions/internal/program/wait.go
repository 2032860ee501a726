package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// Await runs work. If that takes longer than a second, a line on the terminal of Stderr says what
// is waited for; what is called from another goroutine. After a signal the error is a Failure that
// says so, and the value is what the work returned.
func Await[T any](ctx context.Context, env Env, what func() string, work func() (T, error)) (T, error) {
	end := showWaiting(env, what)
	value, err := work()
	end()
	if errors.Is(ctx.Err(), context.Canceled) {
		err = Incomplete(errors.New("interrupted while waiting for " + what()))
	}
	return value, err
}

// showWaiting shows the line. end wipes it.
func showWaiting(env Env, what func() string) (end func()) {
	width, _, ok := size(env.ErrTerminal)
	if !ok {
		return func() {}
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
					env.draw(wipe)
				}
				return
			case <-second.C:
				line := fmt.Sprintf("waiting for %s, %ds; Ctrl-C ends it", what(), seconds)
				env.draw(wipe + console.Style{Width: width}.Cut(line))
			}
		}
	})
	return func() {
		close(stop)
		showing.Wait()
	}
}

// wipe empties the line of a terminal's cursor (ECMA-48, EL).
const wipe = "\r\x1b[K"
