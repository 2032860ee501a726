package worker

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// take says which leases a host should acquire: the SDK's rule of equal partitions. Each of the
// live hosts, this one among them, is to have the partitions divided by the hosts, rounded up. A
// host that has fewer takes free leases or, where none is free, one from the host that has most; it
// takes no more than one at a time, lest two hosts take from each other for ever.
func take(all []leasefake.DotNetLease, host string, now time.Time, expiration time.Duration) []leasefake.DotNetLease {
	var free []leasefake.DotNetLease
	counts := map[string]int{host: 0}
	for _, l := range all {
		if takeable(l, now, expiration) {
			free = append(free, l)
		} else {
			counts[*l.Owner]++
		}
	}
	target := max(1, (len(all)+len(counts)-1)/len(counts))
	needed := target - counts[host]
	switch {
	case needed <= 0:
		return nil
	case len(free) > 0:
		return free[:min(needed, len(free))]
	default:
		return steal(all, counts, target, needed)
	}
}

// steal takes one lease from the host that has most, where that leaves it no worse off than this
// one.
func steal(all []leasefake.DotNetLease, counts map[string]int, target, needed int) []leasefake.DotNetLease {
	spared := target
	if needed > 1 {
		spared--
	}
	richest := ""
	for _, l := range all {
		if counts[*l.Owner] > counts[richest] {
			richest = *l.Owner
		}
	}
	if counts[richest] <= spared {
		return nil
	}
	for i := range all {
		if all[i].OwnedBy(richest) {
			return all[i : i+1]
		}
	}
	return nil
}

// takeable reports whether anybody may take a lease: nobody owns it, or whoever does has not
// renewed it in time.
func takeable(l leasefake.DotNetLease, now time.Time, expiration time.Duration) bool {
	return l.OwnedBy("") || l.Updated().Add(expiration).Before(now)
}
