package changefeedprocessor

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// lockTime is how long the lock of the host that creates the leases lasts if that host dies
// (BootstrapperCore.cs).
const lockTime = 30 * time.Second

// start sees to it that there are leases. Without the marker that there are, one host creates those of all keys
// that none covers, and the others wait for it (BootstrapperCore.cs).
func (h *host) start() error {
	marker, lock, tag := h.leases.Prefix+".info", h.leases.Prefix+".lock", ""
	defer func() {
		if tag != "" {
			_, _ = h.leases.write(h.life, lock, lock, nil, tag) // else it expires
		}
	}()
	for h.working.Err() == nil {
		marked, err := h.leases.list(h.working, marker)
		if err != nil {
			return err
		}
		missing, err := h.missing()
		if err != nil || len(marked) > 0 && len(missing) == 0 {
			return err
		}
		if len(marked) > 0 {
			h.Log.Warn("no lease covers some keys, and nobody processes their changes: stop all hosts and delete the marker to have leases created", "marker", marker, "ranges", missing)
			return nil
		}
		if tag == "" { // what there is under the lock counts
			if tag, err = h.leases.write(h.working, lock, lock, h.metadata(lock, lockTime), ""); errors.Is(err, errExists) {
				pause(h.working, h.AcquireInterval*15/13) // 15 s for an interval of 13 s, as in .NET
			} else if err != nil {
				return err
			}
			continue
		}
		if err := h.create(missing); err != nil {
			return err
		}
		if _, err = h.leases.write(h.life, marker, marker, h.metadata(marker, 0), ""); errors.Is(err, errExists) {
			return nil
		}
		return err
	}
	return nil
}

// metadata is a document beside the leases; ttl is 0 for none.
func (h *host) metadata(id string, ttl time.Duration) []byte {
	fields := map[string]any{"id": id}
	if h.leases.Keyed {
		fields["partitionKey"] = id
	}
	if ttl > 0 {
		fields["ttl"] = int(ttl.Seconds())
	}
	document, _ := json.Marshal(fields) // never fails for texts and numbers
	return document
}

// missing returns the keys that no lease covers. The ranges are read first, so that what replaces a lease
// meanwhile is seen (PartitionSynchronizerCore.cs).
func (h *host) missing() ([]changefeed.Share, error) {
	ranges, err := h.feed.ranges(h.life, true)
	if err != nil {
		return nil, err
	}
	all, _, err := h.leases.all(h.life)
	return changefeed.Uncovered(ranges, all), err
}

// create creates leases for keys that none covers.
func (h *host) create(missing []changefeed.Share) error {
	for _, hole := range missing {
		l := h.leases.PK(hole.Of, "", time.Now())
		if !hole.Keys.Equal(hole.Of.Span()) {
			l = h.leases.EPK(hole.Keys, "", time.Now())
		}
		if err := h.leases.put(h.life, l, false); err != nil && !errors.Is(err, errExists) {
			return err
		}
	}
	return nil
}
