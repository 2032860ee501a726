package changefeed

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

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

// FoundLease is a document of a lease container, read without knowing which processors there are.
type FoundLease struct {
	LeaseDocument
	Format Format
}

// ParseFoundLease reads a lease as ParseLease does, and finds its format: by properties that only
// one SDK writes, and for PK-range leases by the id, in which .NET has RIDs and Java names.
func ParseFoundLease(document []byte) FoundLease {
	lease, err := ParseLease(document)
	found := FoundLease{LeaseDocument: LeaseDocument{Lease: lease, Err: err}}
	var fields map[string]json.RawMessage // not a struct, which would not distinguish FeedRange and feedRange
	_ = json.Unmarshal(document, &fields) // ParseLease has reported what is not an object
	found.Format = format(lease.ID, fields)
	return found
}

func format(id string, fields map[string]json.RawMessage) Format {
	_, token := fields["LeaseToken"]
	_, v2Token := fields["PartitionId"]
	_, javaRange := fields["feedRange"]
	prefix, _ := splitLeaseID(id)
	_, byRID := ReadRIDs(prefix)
	epk := string(fields["version"]) == "1"
	switch {
	case epk && (javaRange || wrapsState(fields["ContinuationToken"])):
		return FormatJavaEPK
	case epk:
		return FormatDotNetEPK
	case v2Token && !token:
		return FormatV2
	case byRID:
		return FormatDotNetPK
	default:
		return FormatJavaPK
	}
}

func wrapsState(continuation json.RawMessage) bool {
	text, _ := optionalString(continuation)
	_, wrapped := parseState(text)
	return wrapped
}

// FoundProcessor is the leases of one processor, grouped by the prefix of their ids.
type FoundProcessor struct {
	Prefix  string          // of the lease ids, up to the last ".."
	Formats []Format        // of the leases that can be read; sorted
	Modes   []Mode          // of the leases that can be read; sorted
	Leases  []LeaseDocument // one per lease token, as Select returns them, those that cannot be read included
}

// Inventory groups the leases of a container by processor, in the order of their prefixes.
// Documents whose id is not that of a lease are left out, such as the markers that the SDKs keep
// next to the leases.
func Inventory(documents []FoundLease) []FoundProcessor {
	byPrefix := make(map[string][]FoundLease)
	for _, d := range documents {
		prefix, rest := splitLeaseID(d.ID)
		if prefix == "" || d.Err != nil && isMarker(rest) {
			continue
		}
		byPrefix[prefix] = append(byPrefix[prefix], d)
	}
	processors := make([]FoundProcessor, 0, len(byPrefix))
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		processors = append(processors, foundProcessor(prefix, byPrefix[prefix]))
	}
	return processors
}

func foundProcessor(prefix string, found []FoundLease) FoundProcessor {
	formats, modes := make(map[Format]bool), make(map[Mode]bool)
	documents := make([]*LeaseDocument, len(found))
	for i, d := range found {
		documents[i] = &d.LeaseDocument
		if documents[i].Token == "" {
			_, documents[i].Token = splitLeaseID(d.ID)
		}
		if d.Err == nil {
			formats[d.Format], modes[d.Mode] = true, true
		}
	}
	return FoundProcessor{
		Prefix:  prefix,
		Formats: slices.Sorted(maps.Keys(formats)),
		Modes:   slices.Sorted(maps.Keys(modes)),
		Leases:  newestOfEach(documents),
	}
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

// isMarker reports whether a document that is no lease is one of the two markers, ".info" and
// ".lock", that the SDKs keep for a processor (azure-cosmos-dotnet-v3,
// DocumentServiceLeaseStoreCosmos.cs). Their ids have a ".." only where a name has one.
func isMarker(end string) bool {
	return strings.HasSuffix(end, ".info") || strings.HasSuffix(end, ".lock")
}

// Owner is one instance of a processor, by the name in the leases that it owns.
type Owner struct {
	Name    string
	Leases  int
	Renewed time.Time // newest renewal of its leases; zero where unknown
}

// Live reports whether the owner renewed a lease within expiration.
func (o Owner) Live(now time.Time, expiration time.Duration) bool {
	return now.Sub(o.Renewed) <= expiration
}

// Owners returns the instances that own leases, sorted by name.
func (p FoundProcessor) Owners() []Owner {
	byName := make(map[string]Owner)
	for _, l := range p.Leases {
		if l.Err != nil || l.Owner == "" {
			continue
		}
		o := byName[l.Owner]
		o.Name, o.Leases = l.Owner, o.Leases+1
		if l.Time.After(o.Renewed) {
			o.Renewed = l.Time
		}
		byName[o.Name] = o
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Owner) int { return cmp.Compare(a.Name, b.Name) })
}

// Renewals returns the newest and the oldest renewal among the leases of the processor; zero where
// unknown.
func (p FoundProcessor) Renewals() (newest, oldest time.Time) {
	for _, l := range p.Leases {
		if l.Err != nil || l.Time.IsZero() {
			continue
		}
		if l.Time.After(newest) {
			newest = l.Time
		}
		if oldest.IsZero() || l.Time.Before(oldest) {
			oldest = l.Time
		}
	}
	return newest, oldest
}

// Unreadable returns the documents that have the id of a lease and cannot be read as one.
func (p FoundProcessor) Unreadable() []LeaseDocument {
	return slices.DeleteFunc(slices.Clone(p.Leases), func(l LeaseDocument) bool { return l.Err == nil })
}
