package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
)

func TestAHandlerEndsWithItsParentOrWithItsOwnContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	for _, c := range []struct {
		rule  string
		after func(parent *atomic.Int64, stop context.CancelCauseFunc)
		want  error // why it ended within a look; nil = it goes on
		says  string
	}{
		{"a parent that stays", func(*atomic.Int64, context.CancelCauseFunc) {}, nil, ""},
		{"a parent that is gone, in whose place is the first process", func(parent *atomic.Int64, _ context.CancelCauseFunc) { parent.Store(1) }, errParentGone, "the Functions host that started it is gone"},
		{"or one that takes in orphans", func(parent *atomic.Int64, _ context.CancelCauseFunc) { parent.Store(99) }, errParentGone, "the Functions host that started it is gone"},
		{"a signal", func(_ *atomic.Int64, stop context.CancelCauseFunc) { stop(stopped) }, stopped, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var parent atomic.Int64
				parent.Store(42)
				var log bytes.Buffer
				outer, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				ctx, cancel := withParent(outer, program.Env{Parent: func() int { return int(parent.Load()) }}, slog.New(slog.NewTextHandler(&log, nil)))
				time.Sleep(time.Minute)
				if ctx.Err() != nil {
					t.Fatalf("it ended: %v", context.Cause(ctx))
				}
				c.after(&parent, stop)
				time.Sleep(parentCheck)
				synctest.Wait()
				if got := context.Cause(ctx); !errors.Is(got, c.want) {
					t.Errorf("the cause is %v, want %v", got, c.want)
				}
				if c.says == "" && log.Len() > 0 || !strings.Contains(log.String(), c.says) {
					t.Errorf("it said %q, want %q", &log, c.says)
				}
				cancel() // after which nobody looks any more, or the bubble would not end
				synctest.Wait()
			})
		})
	}
}
