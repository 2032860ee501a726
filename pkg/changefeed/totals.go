package changefeed

// Totals are the sums over the partitions of one measurement, as the API, the events, the history
// and the terminal show them. nil means unknown, which is never the same as zero.
type Totals struct {
	Lag               *int64 // pending transactions; nil where no partition is known
	Age               *int64 // seconds since the oldest pending change was written; nil also where nothing is pending
	Partitions        *int   // a lease whose range was split counts as the ranges that replaced it; nil where the leases could not be read
	PartitionsWithLag *int   // nil where no partition is known
	Complete          bool   // no partition is unknown
	Status            Status // the worst of the partitions
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
