package changefeed

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// LeaseDocument is a document of a lease container: a lease, or the error of ParseLease.
type LeaseDocument struct {
	Lease
	Err error // nil for a lease
}

// mixedWithin is how close the newest writes of two families have to be for both to count as live: a
// lease is renewed every 17 s and expires after 60 s, in all SDKs.
const mixedWithin = 2 * time.Minute

// ErrMixed says that both .NET and Java keep leases under one identity at the same time: one of them is
// somebody else's, and nothing tells which.
var ErrMixed = errors.New("leases of .NET and of Java are live under one prefix, so that either may be another processor's: " +
	"set leaseFormat to dotnet or java, and give one of them a name of its own")

// Documents are the leases of a container by the prefix of their ids, and the markers of the SDKs by their ids.
type Documents map[string][]*LeaseDocument

// Sorted sorts leases by their prefixes, and limits their times to what an owner can have written until now.
func Sorted(documents []LeaseDocument, now time.Time) Documents {
	sorted := make(Documents)
	for i := range documents {
		d := &documents[i]
		d.limitTime(now)
		prefix, _ := splitLeaseID(d.ID)
		if d.Err != nil && (strings.HasSuffix(d.ID, markerEnding) || strings.HasSuffix(d.ID, ".lock")) {
			prefix = d.ID // which has a ".." only if a name has one
		}
		sorted[prefix] = append(sorted[prefix], d)
	}
	return sorted
}

// Select returns the leases that belong to a processor, one per lease token and ordered by it: those
// whose id is one of the prefixes and a lease token, and which a family wrote. With FamilyAny, the
// leases of the family that wrote last count; the error is ErrMixed if both write.
//
// Of several leases with one token the newest counts: a container partitioned by a GUID permits several,
// and so do two spellings of the host.
func (d Documents) Select(prefixes []string, family Family) ([]LeaseDocument, error) {
	own := make(map[Family][]*LeaseDocument, 2)
	for _, prefix := range prefixes {
		for _, l := range d[strings.TrimSuffix(prefix, "..")] {
			own[l.Format.Family()] = append(own[l.Format.Family()], l)
		}
	}
	var err error
	if family == FamilyAny {
		family, err = newest(own[FamilyDotNet], own[FamilyJava])
	}
	return newestOfEach(own[family]), err
}

// newest returns the family that wrote a lease last.
func newest(dotnet, java []*LeaseDocument) (Family, error) {
	dotnetWrote, dotnetOwned := lastWrite(dotnet)
	javaWrote, javaOwned := lastWrite(java)
	switch {
	case dotnetOwned && javaOwned && dotnetWrote.Sub(javaWrote).Abs() < mixedWithin:
		return FamilyAny, ErrMixed
	case len(dotnet) == 0, javaWrote.After(dotnetWrote):
		return FamilyJava, nil
	}
	return FamilyDotNet, nil
}

// lastWrite returns when the last of some leases was written, and whether any has an owner.
func lastWrite(leases []*LeaseDocument) (last time.Time, owned bool) {
	for _, d := range leases {
		if d.Time.After(last) {
			last = d.Time
		}
		owned = owned || d.Owner != ""
	}
	return last, owned
}

// newestOfEach returns the newest lease of each token, ordered by token.
func newestOfEach(leases []*LeaseDocument) []LeaseDocument {
	newest := make(map[string]*LeaseDocument, len(leases))
	for _, d := range leases {
		if last, seen := newest[d.Token]; !seen || d.Newer(last.Lease) {
			newest[d.Token] = d
		}
	}
	selected := make([]LeaseDocument, 0, len(newest))
	for _, d := range slices.SortedFunc(maps.Values(newest), compareLeases) {
		selected = append(selected, *d)
	}
	return selected
}

// compareLeases orders PK-range leases by range id, and then EPK leases by their bounds.
func compareLeases(a, b *LeaseDocument) int {
	x, y := *cmp.Or(a.Range, &Range{}), *cmp.Or(b.Range, &Range{})
	return cmp.Or(CompareEPK(x.Min, y.Min), CompareEPK(x.Max, y.Max), compareTokens(a.Token, b.Token))
}

// compareTokens orders partition key range ids, which are decimal numbers.
func compareTokens(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// markerEnding takes the place of the two dots and the lease token in the id of the document that the SDKs
// write once all leases exist (azure-cosmos-dotnet-v3, DocumentServiceLeaseStoreCosmos.cs).
const markerEnding = ".info"

// Marked reports whether the marker stands beside a lease, which says that its processor has created all leases.
func (d Documents) Marked(l LeaseDocument) bool {
	prefix, _ := splitLeaseID(l.ID)
	return len(d[prefix+markerEnding]) > 0
}

// Format says which SDK wrote a lease, and in which of its formats (docs/lag.md, Formats of
// leases).
type Format string

// The formats. One processor can have leases in several while it goes over from one to another.
const (
	FormatV2        Format = "V2"
	FormatDotNetPK  Format = ".NET PK"
	FormatDotNetEPK Format = ".NET EPK"
	FormatJavaPK    Format = "Java PK"
	FormatJavaEPK   Format = "Java EPK"
)

// Family returns the family of SDKs that write leases in the format.
func (f Format) Family() Family {
	if f == FormatJavaPK || f == FormatJavaEPK {
		return FamilyJava
	}
	return FamilyDotNet
}

// FoundProcessor is the leases of one processor, grouped by the prefix of their ids.
type FoundProcessor struct {
	Prefix string          // of the lease ids, up to the last ".."
	Leases []LeaseDocument // one per lease token, as Select returns them, those that cannot be read included
}

// Inventory groups the leases of a container by processor, in the order of their prefixes. It leaves out the
// two markers, ".info" and ".lock", that the SDKs keep next to the leases.
func (d Documents) Inventory() (processors []FoundProcessor) {
	for _, prefix := range slices.Sorted(maps.Keys(d)) {
		if prefix != "" && d[prefix][0].ID != prefix { // else these are a marker, or no documents of the SDKs
			processors = append(processors, FoundProcessor{prefix, newestOfEach(d[prefix])})
		}
	}
	return processors
}

// splitLeaseID splits the id of a lease at the last "..", since a lease token has none, but the
// names in front of it may.
func splitLeaseID(id string) (prefix, token string) {
	at := strings.LastIndex(id, "..")
	if at < 0 {
		return "", id
	}
	return id[:at], id[at+len(".."):]
}
