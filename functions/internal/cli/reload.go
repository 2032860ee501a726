package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
)

// reloadCheck is the interval between two looks at the processors file. Notifications are not
// enough: a mounted file sends none.
const reloadCheck = time.Second

// reloads watches the processors file of a running process.
type reloads struct {
	env          program.Env
	file, source string // flag --config, and where the configuration was read from
	log          *slog.Logger
	hangup       chan os.Signal
	seen         string // the look of the file that was read last
}

// newReloads watches the file that a configuration was read from. stop releases SIGHUP.
func newReloads(env program.Env, file, source string, log *slog.Logger) (r *reloads, stop func()) {
	// FEEDSCALE_PROCESSORS is no file, and never changes.
	r = &reloads{env: env, file: file, source: source, log: log, hangup: make(chan os.Signal, 1), seen: look(source)}
	if !env.Person() { // a terminal sends SIGHUP when it closes, to end its processes
		signal.Notify(r.hangup, syscall.SIGHUP)
	}
	return r, func() { signal.Stop(r.hangup) }
}

// next waits for a change of the file, or SIGHUP, and returns the new configuration; nil when ctx
// ends. It logs a file with mistakes once, and waits on.
func (r *reloads) next(ctx context.Context) *config.Config {
	ticker := time.NewTicker(reloadCheck)
	defer ticker.Stop()
	for before := r.seen; ; {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangup:
			asked = true
		case <-ticker.C:
		}
		now := look(r.source)
		// A file is read after it stayed the same between two looks: before, it may not be whole.
		changed := now == before && now != r.seen
		before = now
		if !asked && !changed {
			continue
		}
		r.seen = now
		c, err := readConfig(r.env, r.file)
		if err == nil {
			r.log.Info("the processors file is read again", "source", r.source, "processors", len(c.Processors))
			return &c
		}
		r.log.Error("the processors file has mistakes: what was read before goes on", "source", r.source, "mistakes", strings.Split(err.Error(), "\n"))
	}
}

// look is a text that changes with a file; "" if there is none.
func look(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime())
}
