//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package npm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes an exclusive lock on a file, which it creates if necessary. The system releases the
// lock when the process ends, however it ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = file.Close() }
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			unlock()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
		}
	}
}
