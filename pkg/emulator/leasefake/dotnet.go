package leasefake

// DotNetPK is a PK-range lease of version 3 of the .NET SDK, which Functions
// triggers use too.
func (p Processor) DotNetPK(rangeID string, span Range, f Fields) map[string]any {
	lease := p.DotNetPKOld(rangeID, f)
	lease["FeedRange"], lease["Mode"] = span.feedRange(), f.dotNetMode()
	return lease
}

// DotNetPKOld is one that dates from before leases said their range and mode,
// neither of which is added to it later.
func (p Processor) DotNetPKOld(rangeID string, f Fields) map[string]any {
	lease := p.dotNet(rangeID, f)
	lease["version"] = 0
	return lease
}

// DotNetPKFromV2 is one that version 3 took over from V2: it keeps both names
// of the lease token.
func (p Processor) DotNetPKFromV2(rangeID string, f Fields) map[string]any {
	lease := p.DotNetPKOld(rangeID, f)
	lease["PartitionId"] = rangeID
	return lease
}

// DotNetEPK is an EPK lease of version 3 of the .NET SDK, which it makes of
// PK-range leases after a merge, and of such leases ever after.
func (p Processor) DotNetEPK(span Range, f Fields) map[string]any {
	lease := p.dotNet(span.token(), f)
	lease["version"], lease["FeedRange"], lease["Mode"] = 1, span.feedRange(), f.dotNetMode()
	return lease
}

// dotNet is what all leases of version 3 have.
func (p Processor) dotNet(token string, f Fields) map[string]any {
	lease := p.dotNetAndV2(token, f)
	lease["LeaseToken"] = token
	if f.PartitionKey != "" {
		lease["partitionKey"] = f.PartitionKey
	}
	return lease
}

// dotNetAndV2 is what all leases have that one of the two libraries writes.
func (p Processor) dotNetAndV2(token string, f Fields) map[string]any {
	return map[string]any{
		"id":                p.DotNetPrefix() + ".." + token,
		"Owner":             orNull(f.Owner),
		"ContinuationToken": f.Continuation,
		"properties":        map[string]any{},
		"timestamp":         f.dotNetTime(),
	}
}

// dotNetTime is the time of the last update in ticks of 100 ns, without zeros
// at the end; null where there was none.
func (f Fields) dotNetTime() any {
	if f.Updated.IsZero() {
		return nil
	}
	return f.Updated.UTC().Format("2006-01-02T15:04:05.9999999Z")
}

func (f Fields) dotNetMode() string {
	if f.Mode == Incremental {
		return "Incremental Feed"
	}
	return "Full-Fidelity Feed"
}
