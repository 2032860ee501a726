package changefeedprocessor

import (
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// share says which leases a host should acquire, as .NET computes it (EqualPartitionsBalancingStrategy.cs): free
// ones up to its share, the leases divided by the hosts that own some, rounded up. If none is free, stealing is
// true: wanted are leases of the host that has most, of which the host should take one. Otherwise two hosts might
// take from each other for ever.
func share(host string, all []*changefeed.Record, now time.Time, expiration time.Duration) (wanted []*changefeed.Record, stealing bool) {
	var free []*changefeed.Record
	hosts := map[string]int{host: 0} // with how many leases each has
	for _, l := range all {
		if l.Expired(now, expiration) {
			free = append(free, l)
		} else {
			hosts[l.Owner]++
		}
	}
	target := max(1, (len(all)+len(hosts)-1)/len(hosts))
	needed := target - hosts[host]
	switch {
	case needed <= 0:
		return nil, false
	case len(free) > 0:
		return free[:min(needed, len(free))], false
	}
	richest := slices.MaxFunc(slices.Sorted(maps.Keys(hosts)), func(a, b string) int { return hosts[a] - hosts[b] })
	if hosts[richest] <= target-min(1, needed-1) {
		return nil, true
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *changefeed.Record) bool { return l.Owner != richest }), true
}
