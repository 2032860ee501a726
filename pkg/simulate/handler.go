package simulate

// work is a second of one host, and returns the credits that it used. Each lease has a loop of its own, which reads a batch, has the
// handler process it, checkpoints, and reads the next; the loops share the replica's throughput
// evenly, each up to what one lease can be worked off by
// (FeedProcessorCore.cs and AutoCheckpointer in Azure/azure-cosmos-dotnet-v3).
func (f *fleet) work(h *host, budget int64, row int) (all int64) {
	busy := f.busy[:0]
	for _, l := range h.leases {
		if l.batch == 0 && l.look <= row {
			f.read(l, row)
		}
		if l.batch > 0 {
			l.spare = f.leaseSpeed
			busy = append(busy, l)
		}
	}
	f.busy = busy
	for len(busy) > 0 {
		share := budget / int64(len(busy))
		if share == 0 {
			return all
		}
		still := busy[:0]
		for _, l := range busy {
			used := f.process(l, min(share, l.spare), row)
			budget, all = budget-used, all+used
			if l.spare -= used; l.spare > 0 && l.batch > 0 {
				still = append(still, l)
			}
		}
		busy = still
	}
	return all
}

// read takes the next batch of a lease; where there is nothing, the owner looks again after the poll
// delay.
func (f *fleet) read(l *lease, row int) {
	if l.batch = min(int64(f.Batch), l.pending()); l.batch == 0 {
		l.look = row + wholeSeconds(f.PollDelay)
	}
}

// process spends credits on a lease, batch after batch, and returns how many were used.
func (f *fleet) process(l *lease, credits int64, row int) (used int64) {
	for credits > used && l.batch > 0 {
		rest := l.batch*credit - l.progress
		if credits-used < rest {
			l.progress += credits - used
			return credits
		}
		used += rest
		f.checkpoint(l, row)
		f.read(l, row)
	}
	return used
}

// checkpoint ends a batch: its changes, the oldest of the partition, are done.
func (f *fleet) checkpoint(l *lease, row int) {
	l.done += l.batch
	f.pending -= l.batch
	l.batch, l.progress, l.written = 0, 0, row
	l.advance(f.trace.Arrivals, len(f.leases))
}
