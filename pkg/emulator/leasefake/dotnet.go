package leasefake

import (
	"encoding/json"
	"time"
)

// DotNetLease is a lease document of version 3 of the .NET SDK, which Functions triggers use too,
// as DocumentServiceLeaseCore and DocumentServiceLeaseCoreEpk of Azure/azure-cosmos-dotnet-v3 write
// it: in their order, and null if they write null. It is for whoever works on leases as a processor
// does; the methods of [Processor] make whole documents of it.
type DotNetLease struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey,omitempty"`
	Version      int    `json:"version"` // PKVersion or EPKVersion
	ETag         string `json:"_etag,omitempty"`
	// id of the partition key range; of an EPK lease its bounds, as min-max
	Token string `json:"LeaseToken"`
	// the token once more, where V2 wrote the lease first
	PartitionID string `json:"PartitionId,omitempty"`
	// nil in a lease that dates from before leases said their range
	FeedRange *FeedRange `json:"FeedRange,omitempty"`
	Owner     *string    `json:"Owner"` // nil: nobody
	// ETag of the last page that was processed; nil: none was
	Continuation *string           `json:"ContinuationToken"`
	Properties   map[string]string `json:"properties"`
	// last update by a host; nil if there was none since the creation
	Timestamp *string `json:"timestamp"`
	// "" in a lease that dates from before leases said their mode
	Mode string `json:"Mode,omitempty"`
	// seconds since 1970, by the account's clock
	Written int64 `json:"_ts,omitempty"`
}

// The versions of a lease. One of a partition key range follows that, and is replaced when the
// range is split or merged. An EPK lease stands for a part of the key space, wherever its keys are,
// and must be replaced only by a split.
const (
	PKVersion  = 0
	EPKVersion = 1
)

// FeedRange is how a lease says which part of the key space it covers.
type FeedRange struct {
	Range Range `json:"Range"`
}

// PKLease is a lease of a partition key range.
func (p Processor) PKLease(rangeID string, span Range, f Fields) DotNetLease {
	lease := p.dotNet(PKVersion, rangeID, f)
	lease.FeedRange, lease.Mode = &FeedRange{span}, f.dotNetMode()
	return lease
}

// EPKLease is a lease of a part of the key space, which .NET makes of PK-range leases after a
// merge, and of such leases ever after.
func (p Processor) EPKLease(span Range, f Fields) DotNetLease {
	lease := p.dotNet(EPKVersion, span.Token(), f)
	lease.FeedRange, lease.Mode = &FeedRange{span}, f.dotNetMode()
	return lease
}

// dotNet is what all leases of version 3 have.
func (p Processor) dotNet(version int, token string, f Fields) DotNetLease {
	lease := DotNetLease{
		ID: p.DotNetPrefix() + ".." + token, PartitionKey: f.PartitionKey, Version: version, Token: token,
		Continuation: f.Continuation, Properties: map[string]string{},
	}
	if f.Owner != "" {
		lease.Owner = &f.Owner
	}
	if !f.Updated.IsZero() {
		lease.Stamp(f.Updated)
	}
	return lease
}

// Stamp notes that a host updates the lease.
func (l *DotNetLease) Stamp(now time.Time) { l.Timestamp = new(dotNetTime(now)) }

// Updated is when a host updated the lease last; where none did, when the account wrote it.
func (l *DotNetLease) Updated() time.Time {
	if l.Timestamp != nil {
		if t, err := time.Parse(time.RFC3339Nano, *l.Timestamp); err == nil {
			return t
		}
	}
	return time.Unix(l.Written, 0)
}

// OwnedBy reports whether a host owns the lease; "" is nobody.
func (l *DotNetLease) OwnedBy(host string) bool {
	if l.Owner == nil {
		return host == ""
	}
	return *l.Owner == host
}

// Document is the lease as a document.
func (l DotNetLease) Document() map[string]any {
	text, _ := json.Marshal(l) // never fails: it has texts and numbers only
	var document map[string]any
	_ = json.Unmarshal(text, &document)
	return document
}

// DotNetPK is a PK-range lease of version 3 of the .NET SDK, which Functions triggers use too.
func (p Processor) DotNetPK(rangeID string, span Range, f Fields) map[string]any {
	return p.PKLease(rangeID, span, f).Document()
}

// DotNetPKOld is one that dates from before leases said their range and mode, neither of which is
// added to it later.
func (p Processor) DotNetPKOld(rangeID string, f Fields) map[string]any {
	return p.dotNet(PKVersion, rangeID, f).Document()
}

// DotNetPKFromV2 is one that version 3 took over from V2: it keeps both names of the lease token.
func (p Processor) DotNetPKFromV2(rangeID string, f Fields) map[string]any {
	lease := p.dotNet(PKVersion, rangeID, f)
	lease.PartitionID = rangeID
	return lease.Document()
}

// DotNetEPK is an EPK lease of version 3 of the .NET SDK.
func (p Processor) DotNetEPK(span Range, f Fields) map[string]any {
	return p.EPKLease(span, f).Document()
}

// dotNetTime is a time in ticks of 100 ns, without zeros at the end.
func dotNetTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.9999999Z")
}

func (f Fields) dotNetMode() string {
	if f.Mode == Incremental {
		return "Incremental Feed"
	}
	return "Full-Fidelity Feed"
}
