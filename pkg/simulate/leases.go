package simulate

import "slices"

// The SDKs' own settings, in seconds (ChangeFeedLeaseOptions.cs in Azure/azure-cosmos-dotnet-v3). No owner
// dies, so that leaseExpirationInterval is not in the model.
const (
	acquireInterval = 13 // between two looks of a host at the leases
	renewInterval   = 17 // between two renewals of a lease by its owner
)

// A look at the leases takes a query, and a write for each lease that is taken, in milliseconds. Hosts
// that look meanwhile choose the same leases, and lose (DocumentServiceLeaseUpdaterCosmos.cs). With these
// times 32 leases move as Microsoft.Azure.Cosmos 3.64.0 moves them (TestLeasesMoveAsTheSDKMovesThem).
const (
	queryTime = 50
	writeTime = 28
)

// balance has the hosts whose time it is look at the leases (PartitionLoadBalancerCore.cs).
func (f *fleet) balance(row int) {
	var due []*host
	for _, h := range f.hosts {
		if h.acquire <= row {
			h.acquire, h.at = row+acquireInterval, f.random.IntN(1000)
			due = append(due, h)
		}
	}
	slices.SortStableFunc(due, func(a, b *host) int { return a.at - b.at })
	until := 0 // millisecond at which the last one that took leases had written them
	for _, h := range due {
		if h.at < until {
			continue
		}
		if taken := f.choose(h, row); taken > 0 {
			until = h.at + queryTime + writeTime*taken
		}
	}
}

// choose takes leases for a host, and returns how many: of those that nobody owns as many as its
// share of the hosts that own something; if none is free, one of the host that owns most
// (EqualPartitionsBalancingStrategy.cs). Java's library takes only one of the free ones, any of them,
// while another host owns some (EqualPartitionsBalancingStrategy.java in Azure/azure-sdk-for-java).
func (f *fleet) choose(h *host, row int) (taken int) {
	var wanted []*lease
	workers, seen := []*host{h}, map[*host]bool{h: true}
	for p := range f.leases {
		if l := &f.leases[p]; l.owner == nil {
			wanted = append(wanted, l)
		} else if !seen[l.owner] {
			seen[l.owner] = true
			workers = append(workers, l.owner)
		}
	}
	share := (len(f.leases) + len(workers) - 1) / len(workers)
	needed := share - len(h.leases)
	switch {
	case needed <= 0:
		return 0
	case len(wanted) > 0 && f.Java && len(workers) > 1:
		at := f.random.IntN(len(wanted))
		wanted = wanted[at : at+1]
	case len(wanted) > 0:
		wanted = wanted[:min(needed, len(wanted))]
	default:
		most := h
		for _, w := range workers {
			if len(most.leases) <= len(w.leases) {
				most = w
			}
		}
		if len(most.leases) <= share-min(1, needed-1) {
			return 0
		}
		first := slices.IndexFunc(f.leases, func(l lease) bool { return l.owner == most })
		wanted = []*lease{&f.leases[first]}
	}
	for _, l := range wanted {
		f.take(h, l, row)
	}
	return len(wanted)
}

// take gives a lease to a host. Its owner ends the batch that it has in hand for nothing, since the
// checkpoint fails, and the new owner reads from the last one.
func (f *fleet) take(h *host, l *lease, row int) {
	if o := l.owner; o != nil {
		o.leases = slices.DeleteFunc(o.leases, func(other *lease) bool { return other == l })
		if l.batch > 0 {
			o.late = append(o.late, &lease{batch: l.batch, progress: l.progress, until: l.until})
		}
	}
	l.batch, l.progress = 0, 0
	l.owner, l.acquired, l.look = h, row, row*f.steps+f.ticks(f.Rebalance)
	h.leases = append(h.leases, l)
}

// stop ends the youngest host in order: it gives its leases back at once
// (PartitionControllerCore.ShutdownAsync).
func (f *fleet) stop(row int) {
	last := len(f.hosts) - 1
	for _, l := range f.hosts[last].leases {
		l.batch, l.progress, l.owner, l.written = 0, 0, nil, row
	}
	f.hosts = f.hosts[:last]
}

// renewed is the row in which the lease document was last written, 0 if it never was.
func (l *lease) renewed(row int) int {
	if l.owner == nil {
		return l.written
	}
	return max(l.written, l.acquired+(row-l.acquired)/renewInterval*renewInterval)
}
