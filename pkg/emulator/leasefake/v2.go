package leasefake

// V2 is a lease of the legacy V2 library for .NET.
func (p Processor) V2(rangeID string, f Fields) map[string]any {
	lease := map[string]any{
		"id":                p.DotNetPrefix() + ".." + rangeID,
		"PartitionId":       rangeID,
		"Owner":             orNull(f.Owner),
		"ContinuationToken": f.Continuation,
		"properties":        map[string]any{},
		"timestamp":         nil,
	}
	if !f.Updated.IsZero() {
		lease["timestamp"] = dotNetTime(f.Updated)
	}
	return lease
}

// V2Gremlin is one of the library's later versions, which repeat the id in a property that an
// account for Gremlin accepts as partition key.
func (p Processor) V2Gremlin(rangeID string, f Fields) map[string]any {
	lease := p.V2(rangeID, f)
	lease["gremlincompatid"] = lease["id"]
	return lease
}
