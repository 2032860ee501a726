package changefeedprocessor

import (
	"hash/fnv"
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
	switch needed := target - hosts[host]; {
	case needed <= 0:
		return nil, false
	case len(free) > 0:
		return free[:min(needed, len(free))], false
	default:
		return victims(host, all, hosts, target-min(1, needed-1)), true
	}
}

// victims are the leases of the host that has most, if it has more than are spared. .NET takes the first
// of them. Here the name of this host decides which comes first, so that hosts that look at the same
// moment seldom want the same one.
func victims(host string, all []*changefeed.Record, hosts map[string]int, spared int) []*changefeed.Record {
	richest := host
	for other, leases := range hosts {
		if leases > hosts[richest] || leases == hosts[richest] && other > richest {
			richest = other
		}
	}
	if hosts[richest] <= spared {
		return nil
	}
	theirs := slices.DeleteFunc(slices.Clone(all), func(l *changefeed.Record) bool { return l.Owner != richest })
	name := fnv.New32a()
	_, _ = name.Write([]byte(host)) // never fails
	at := int(name.Sum32() % uint32(len(theirs)))
	return slices.Concat(theirs[at:], theirs[:at])
}
