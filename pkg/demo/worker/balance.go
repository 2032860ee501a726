package worker

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// share says which leases a host should acquire (EqualPartitionsBalancingStrategy). Each of the
// hosts that own a lease, and this one, are to have the leases divided by the hosts, rounded up. A
// host that has fewer takes what nobody owns or renewed in time, up to its share; where there is
// none of that it takes one lease from the host that has most, since two hosts might take from each
// other for ever.
func share(all []leasefake.DotNetLease, host string, now time.Time, expiration time.Duration) []leasefake.DotNetLease {
	var free []leasefake.DotNetLease
	counts := map[string]int{}
	var owners []string // in the order of their first leases
	for _, l := range all {
		if takeable(l, now, expiration) {
			free = append(free, l)
			continue
		}
		if counts[*l.Owner] == 0 {
			owners = append(owners, *l.Owner)
		}
		counts[*l.Owner]++
	}
	if counts[host] == 0 {
		owners = append(owners, host)
	}
	target := max(1, (len(all)+len(owners)-1)/len(owners))
	needed := target - counts[host]
	switch {
	case needed <= 0:
		return nil
	case len(free) > 0:
		return free[:min(needed, len(free))]
	default:
		return steal(all, owners, counts, target, needed)
	}
}

// steal takes one lease from the host that has most, of several the last, where that leaves it no
// worse off than this one.
func steal(all []leasefake.DotNetLease, owners []string, counts map[string]int, target, needed int) []leasefake.DotNetLease {
	spared := target
	if needed > 1 {
		spared--
	}
	richest := ""
	for _, owner := range owners {
		if counts[owner] >= counts[richest] {
			richest = owner
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
