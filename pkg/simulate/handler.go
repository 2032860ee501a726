package simulate

import "slices"

// work is a step of one host, and returns the credits that it used. Each lease has a loop of its own,
// which reads a batch, has it handled, checkpoints, and reads the next (FeedProcessorCore.cs and
// AutoCheckpointer). The loops share the replica's throughput evenly, each up to the lease's own limit.
func (f *fleet) work(h *host, budget int64, tick int) (all int64) {
	var busy []*lease
	for _, leases := range [][]*lease{h.leases, h.late} {
		for _, l := range leases {
			if l.processed() && l.until <= tick {
				f.end(l, tick)
			}
			if l.batch == 0 && l.look <= tick && l.owner != nil {
				f.read(l, tick)
			}
			if l.batch > 0 && !l.processed() {
				l.spare = f.leaseSpeed / int64(f.steps)
				busy = append(busy, l)
			}
		}
	}
	for len(busy) > 0 && budget >= int64(len(busy)) {
		share, still := budget/int64(len(busy)), busy[:0]
		for _, l := range busy {
			used := f.process(l, min(share, l.spare), tick)
			budget, all = budget-used, all+used
			if l.spare -= used; l.spare > 0 && l.batch > 0 && !l.processed() {
				still = append(still, l)
			}
		}
		busy = still
	}
	h.late = slices.DeleteFunc(h.late, func(l *lease) bool { return l.batch == 0 })
	return all
}

// read takes the next batch of a lease, or looks again after the poll delay.
func (f *fleet) read(l *lease, tick int) {
	if l.batch = min(int64(f.Batch), l.pending()); l.batch == 0 {
		l.look = tick + f.ticks(f.PollDelay)
	}
	l.until = tick + f.ticks(f.BatchTime)
}

// processed reports whether all of a batch is processed; its time may not be over.
func (l *lease) processed() bool { return l.batch > 0 && l.progress == l.batch*credit }

// process spends credits on a lease, batch after batch, and returns how many were used.
func (f *fleet) process(l *lease, credits int64, tick int) (used int64) {
	for credits > used && l.batch > 0 && !l.processed() {
		spent := min(l.batch*credit-l.progress, credits-used)
		l.progress += spent
		used += spent
		if l.processed() && l.until <= tick {
			f.end(l, tick)
		}
	}
	return used
}

// end checkpoints a batch, which has the oldest changes of the partition, and reads the next one. The
// checkpoint of a lease that another host has fails.
func (f *fleet) end(l *lease, tick int) {
	done := l.batch
	l.batch, l.progress = 0, 0
	if l.owner == nil {
		return
	}
	l.done += done
	f.pending -= done
	l.written = tick / f.steps
	f.read(l, tick)
}
