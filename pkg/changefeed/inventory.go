package changefeed

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Format is what wrote a lease, and in which of its formats.
type Format string

// The formats. A container can hold several for one processor, while it goes
// over from one to another.
const (
	FormatV2        Format = "V2"
	FormatDotNetPK  Format = ".NET PK"
	FormatDotNetEPK Format = ".NET EPK"
	FormatJavaPK    Format = "Java PK"
	FormatJavaEPK   Format = "Java EPK"
)

// FoundLease is a document of a lease container of which nothing is known
// beforehand.
type FoundLease struct {
	LeaseDocument
	Format Format
}

// ParseFoundLease reads a lease as ParseLease does, and tells its format: by what
// each SDK alone writes, and of PK-range leases by the id, in which .NET has
// RIDs and Java names.
func ParseFoundLease(document []byte) FoundLease {
	lease, err := ParseLease(document)
	found := FoundLease{LeaseDocument: LeaseDocument{Lease: lease, Err: err}}
	var fields map[string]json.RawMessage // a struct would take FeedRange and feedRange for the same
	_ = json.Unmarshal(document, &fields) // what is not an object has no field, and ParseLease has said so
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

// FoundProcessor is the leases of one processor, told from others by their ids.
type FoundProcessor struct {
	Prefix  string          // of the ids, up to ".."
	Formats []Format        // in the order of their names
	Modes   []Mode          // of the leases that can be read; in the order of their names
	Leases  []LeaseDocument // one for each lease token, as Select has them; those that cannot be read too
}

// Inventory groups the leases of a container by processor, in the order of
// their prefixes. Documents that have no lease's id are passed over, such as
// the markers that the SDKs keep beside the leases.
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
	documents := make([]LeaseDocument, len(found))
	for i, d := range found {
		documents[i] = d.LeaseDocument
		if d.Err == nil {
			formats[d.Format], modes[d.Mode] = true, true
		}
	}
	return FoundProcessor{
		Prefix:  prefix,
		Formats: slices.Sorted(maps.Keys(formats)),
		Modes:   slices.Sorted(maps.Keys(modes)),
		Leases:  Select(documents, []string{prefix + ".."}),
	}
}

// splitLeaseID parts the id of a lease at the last "..": a lease token has
// none, but the names in front of it may.
func splitLeaseID(id string) (prefix, token string) {
	at := strings.LastIndex(id, "..")
	if at < 0 {
		return "", id
	}
	return id[:at], id[at+len(".."):]
}

// isMarker tells whether a document that is no lease is one of the two that the
// SDKs keep for a processor. Their ids hold ".." only where a name does.
func isMarker(end string) bool {
	return strings.HasSuffix(end, ".info") || strings.HasSuffix(end, ".lock")
}

// Owner is one instance of a processor, as its leases name it.
type Owner struct {
	Name    string
	Leases  int
	Renewed time.Time // newest of its renewals; zero where unknown
}

// Live tells whether the owner renewed a lease within the expiration.
func (o Owner) Live(now time.Time, expiration time.Duration) bool {
	return now.Sub(o.Renewed) <= expiration
}

// Owners returns the instances that own leases, in the order of their names.
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

// Renewals returns when a lease of the processor was renewed last, and when the
// one that waits the longest; zero where unknown.
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

// Unreadable returns the documents that have the id of a lease but not its shape.
func (p FoundProcessor) Unreadable() []LeaseDocument {
	return slices.DeleteFunc(slices.Clone(p.Leases), func(l LeaseDocument) bool { return l.Err == nil })
}
