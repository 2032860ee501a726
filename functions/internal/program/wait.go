package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// Await runs work. If that takes longer than a second, a line on the terminal of Stderr says what
// is waited for, until work says something else. After a signal the error is a Failure that says
// so, and the value is what the work returned.
func Await[T any](ctx context.Context, env Env, what string, work func(say func(what string)) (T, error)) (T, error) {
	var said atomic.Value
	said.Store(what)
	ended := make(chan struct{})
	var showing sync.WaitGroup
	if env.Person() {
		showing.Go(func() { showWaiting(env, &said, ended) })
	}
	value, err := work(func(what string) { said.Store(what) })
	close(ended)
	showing.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		err = Incomplete(fmt.Errorf("interrupted while waiting for %s", said.Load()))
	}
	return value, err
}

// showWaiting draws the line until ended, and then wipes it.
func showWaiting(env Env, said *atomic.Value, ended <-chan struct{}) {
	const wipe = "\r\x1b[K" // empties the line of the cursor (ECMA-48, EL)
	width, _, _ := size(env.ErrTerminal)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for seconds := 1; ; seconds++ {
		select {
		case <-second.C:
			line := fmt.Sprintf("waiting for %s, %ds; Ctrl-C ends it", said.Load(), seconds)
			env.draw(wipe + console.Style{Width: width}.Cut(line))
		case <-ended:
			if seconds > 1 {
				env.draw(wipe)
			}
			return
		}
	}
}
