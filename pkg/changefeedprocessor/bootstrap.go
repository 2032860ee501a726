package changefeedprocessor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// The lock of the host that creates the leases: how long it lasts if that host dies
// (BootstrapperCore.cs).
const lockTime = 30 * time.Second

// bootstrap sees to it that the leases were created: one host does so, the others wait for it
// (BootstrapperCore.cs).
func (h *host) bootstrap() error {
	marker := h.leases.Prefix + ".info"
	return h.locked(func() (bool, error) {
		_, err := h.leases.read(h.working, marker, marker)
		if errors.Is(err, errMissing) {
			return false, nil
		}
		return err == nil, err
	}, func() error {
		if err := h.createMissing(); err != nil {
			return err
		}
		_, err := h.leases.write(h.life, marker, marker, h.metadata(marker, ""), "")
		if errors.Is(err, errExists) {
			err = nil
		}
		return err
	})
}

// metadata is a document beside the leases; rest are its further fields.
func (h *host) metadata(id, rest string) []byte {
	if h.leases.Keyed {
		rest += fmt.Sprintf(`,"partitionKey":%s`, quote(id))
	}
	return []byte(`{"id":` + quote(id) + rest + `}`)
}

// locked does something unless it is done: while this host holds the lock, for which it waits.
func (h *host) locked(done func() (bool, error), do func() error) error {
	lock := h.leases.Prefix + ".lock"
	document := h.metadata(lock, fmt.Sprintf(`,"ttl":%d`, int(lockTime.Seconds())))
	for h.working.Err() == nil {
		if is, err := done(); is || err != nil {
			return err
		}
		tag, err := h.leases.write(h.working, lock, lock, document, "")
		switch {
		case errors.Is(err, errExists):
			pause(h.working, h.AcquireInterval*15/13) // 15 s for an interval of 13 s, as in .NET
			continue
		case err != nil:
			return err
		}
		err = do()
		if _, unlocked := h.leases.write(h.life, lock, lock, nil, tag); !errors.Is(unlocked, errMissing) && !errors.Is(unlocked, errChanged) {
			err = errors.Join(err, unlocked) // else it has expired, and may be another host's
		}
		return err
	}
	return nil
}

// cover returns the leases, and says which keys none of them covers. With Options.CreateMissing these
// get leases.
func (h *host) cover() ([]*changefeed.Record, error) {
	all, missing, err := h.missing()
	if err != nil || len(missing) == 0 {
		return all, err
	}
	if !h.CreateMissing {
		h.Log.Warn("no lease covers some keys, and nobody processes their changes: set CreateMissing to create leases", "ranges", describe(missing))
		return all, nil
	}
	err = h.locked(func() (bool, error) {
		all, missing, err = h.missing()
		return len(missing) == 0, err
	}, func() error {
		h.Log.Warn("leases are created for keys that none covered: what is before the start of the processor is skipped there", "ranges", describe(missing))
		return h.createMissing()
	})
	return all, err
}

// missing returns the leases, and the keys that none of them covers. The ranges are read first, so that
// what replaces a lease meanwhile is seen (PartitionSynchronizerCore.cs).
func (h *host) missing() ([]*changefeed.Record, []changefeed.Share, error) {
	ranges, err := h.feed.ranges(h.life, true)
	if err != nil {
		return nil, nil, err
	}
	all, _, err := h.leases.all(h.life)
	return all, changefeed.Uncovered(ranges, all), err
}

// createMissing creates leases for the keys that none covers.
func (h *host) createMissing() error {
	_, missing, err := h.missing()
	for _, hole := range missing {
		l := h.leases.PK(hole.Of, "", time.Now())
		if !hole.Keys.Equal(hole.Of.Span()) {
			if h.leases.Format == changefeed.FormatJavaPK {
				return fmt.Errorf("the keys from %q to %q have no lease, and Java's PK leases cannot cover a part of a range", hole.Keys.Min, hole.Keys.Max)
			}
			l = h.leases.EPK(hole.Keys, "", time.Now())
		}
		if err == nil {
			_, err = h.leases.add(h.life, l)
		}
	}
	return err
}

// describe names keys in one line.
func describe(missing []changefeed.Share) string {
	names := make([]string, len(missing))
	for i, s := range missing {
		names[i] = fmt.Sprintf("%q to %q of range %s", s.Keys.Min, s.Keys.Max, s.Of.ID)
	}
	return strings.Join(names, ", ")
}
