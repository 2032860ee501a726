package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
)

// look is the interval between two looks at the processors file. Notifications are not enough: a
// mounted file sends none.
const look = time.Second

// reloads watches the processors file of a running process.
type reloads struct {
	env    program.Env
	file   string // flag --config
	log    *slog.Logger
	hangup chan os.Signal
	seen   os.FileInfo // of the last reading; nil = there was no file
}

// newReloads watches the file that a configuration was read from. stop releases SIGHUP.
func newReloads(env program.Env, file, source string, log *slog.Logger) (r *reloads, stop func()) {
	r = &reloads{env: env, file: file, log: log, hangup: make(chan os.Signal, 1)}
	r.seen, _ = os.Stat(source) // FEEDSCALE_PROCESSORS is no file, and never changes
	if !env.Person() {          // a terminal sends SIGHUP when it closes, to end its processes
		signal.Notify(r.hangup, syscall.SIGHUP)
	}
	return r, func() { signal.Stop(r.hangup) }
}

// next waits for a change of the file, or SIGHUP, and returns the new configuration; nil when ctx
// ends. It logs a file with mistakes once, and waits on.
func (r *reloads) next(ctx context.Context, source string) *config.Config {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	before := r.seen
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangup:
			asked = true
		case <-ticker.C:
		}
		now, _ := os.Stat(source)
		// A file is read after it stayed the same between two looks: before, it may not be whole.
		settled := same(now, before)
		before = now
		if !asked && (!settled || same(now, r.seen)) {
			continue
		}
		r.seen = now
		c, err := readConfig(r.env, r.file)
		if err != nil {
			r.log.Error("the processors file has mistakes: what was read before goes on", "source", source, "mistakes", strings.Split(err.Error(), "\n"))
			continue
		}
		r.log.Info("the processors file is read again", "source", source, "processors", len(c.Processors))
		return &c
	}
}

// same reports whether a file did not change between two looks.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
