package changefeed

// Totals are the sums over the partitions of one measurement, as the API, the events, the history
// and the terminal show them. nil means unknown, which is never the same as zero.
type Totals struct {
	Lag               *int64 `json:"lag"`               // pending transactions; nil if no partition is known
	Age               *int64 `json:"changeAgeSeconds"`  // seconds since the oldest pending change was written; nil also if nothing is pending
	Partitions        *int   `json:"partitionCount"`    // a lease whose range was split counts as the ranges that replaced it; nil if the leases could not be read
	PartitionsWithLag *int   `json:"partitionsWithLag"` // nil if no partition is known
	Complete          bool   `json:"complete"`          // no partition is unknown
	Status            Status `json:"status"`            // the worst of the partitions
}

// Totals returns the sums over the partitions.
func (l *ProcessorLag) Totals() Totals {
	t := Totals{Lag: l.Lag(), Age: l.Age(), Complete: l.Complete(), Status: l.Status()}
	if l.Error == "" {
		t.Partitions = new(l.PartitionCount())
		if t.Lag != nil {
			t.PartitionsWithLag = new(l.PartitionsWithLag())
		}
	}
	return t
}

// Sum returns the totals over several processors: what is unknown of one makes the whole
// incomplete, and a number nil only if no processor has it.
func Sum(of []Totals) Totals {
	sum := Totals{Complete: true}
	for _, t := range of {
		sum.Lag = plus(sum.Lag, t.Lag)
		sum.Partitions = plus(sum.Partitions, t.Partitions)
		sum.PartitionsWithLag = plus(sum.PartitionsWithLag, t.PartitionsWithLag)
		if t.Age != nil && (sum.Age == nil || *t.Age > *sum.Age) {
			sum.Age = t.Age
		}
		sum.Complete = sum.Complete && t.Complete
		sum.Status = Worse(sum.Status, t.Status)
	}
	return sum
}

// plus adds two numbers, of which nil is none.
func plus[N int | int64](a, b *N) *N {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}
