package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
)

// look is how often the processors file is looked at. It is asked for rather than waited for, since a file
// that is mounted from another machine, or into a container, does not tell of its changes.
const look = time.Second

// reloads finds what the processors file of a running process has become.
type reloads struct {
	env    Env
	file   string // the flag that names it
	log    *slog.Logger
	hangup chan os.Signal
	seen   os.FileInfo // as which the file was read; nil = it could not be
}

// newReloads begins with the file that a configuration was read from. stop gives SIGHUP back.
func newReloads(env Env, file, source string, log *slog.Logger) (r *reloads, stop func()) {
	r = &reloads{env: env, file: file, log: log, hangup: make(chan os.Signal, 1)}
	r.seen, _ = os.Stat(source)          // FEEDSCALE_PROCESSORS is no file, and stays
	if _, ok := env.errTerminal(); !ok { // a terminal that is closed sends SIGHUP, to end what it started
		signal.Notify(r.hangup, syscall.SIGHUP)
	}
	return r, func() { signal.Stop(r.hangup) }
}

// next waits until the file is another one without a mistake, or SIGHUP asks for it to be read. It
// returns nil when ctx ends. A file with mistakes is said once, and changes nothing.
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
		// What is being written is not whole yet: it is read once it has stood still from one look to the next.
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

// same reports whether a file was not written to between two looks at it.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
