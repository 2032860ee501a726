package cosmosfake

import (
	"slices"
	"sort"
	"time"
)

// version is one write, as the feed of all versions and deletes shows it.
type version struct {
	lsn       uint64
	at        time.Time
	operation string // create, replace or delete
	name      documentName
	epk       string
	current   *document // nil for a delete
	previous  *document // nil for a create
	expired   bool      // deleted because its time to live had passed
}

// size is what the version adds to a page, roughly.
func (v version) size() int {
	if v.current != nil {
		return len(v.current.open)
	}
	return len(v.previous.open)
}

// mostVersions bounds the log of one partition, whatever the retention; up to twice as many are
// held in memory.
const mostVersions = 50_000

// versions is the log of a partition's writes, as far as it is kept.
type versions struct {
	log     []version
	dropped uint64 // LSN of the newest write that is no longer in the log
}

func (v *versions) add(log []version, now time.Time, retention time.Duration) {
	if retention <= 0 {
		if len(log) > 0 {
			v.dropped = log[len(log)-1].lsn
		}
		return
	}
	v.log = append(v.log, log...)
	// Copying now and then, rather than at every write, keeps writes cheap.
	if old := max(v.tooOld(now, retention), len(v.log)-mostVersions); old > len(v.log)/2 {
		v.dropped = v.log[old-1].lsn
		v.log = slices.Clone(v.log[old:])
	}
}

// tooOld is how many versions at the beginning of the log have passed their retention.
func (v *versions) tooOld(now time.Time, retention time.Duration) int {
	return sort.Search(len(v.log), func(i int) bool { return now.Sub(v.log[i].at) <= retention })
}

// after returns the writes above an LSN; ok is false if some of them are no longer kept.
func (v *versions) after(lsn uint64, now time.Time, retention time.Duration) (log []version, ok bool) {
	first := sort.Search(len(v.log), func(i int) bool { return v.log[i].lsn > lsn })
	if old := v.tooOld(now, retention); first < old {
		return nil, false
	}
	return v.log[first:], lsn >= v.dropped
}
