package changefeed

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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

// Format says in which format the lease is written: by properties that only one SDK writes, and for
// PK-range leases by the id, in which .NET has RIDs and Java names.
func (l Lease) Format() Format {
	prefix, _ := splitLeaseID(l.ID)
	_, byRID := ReadRIDs(prefix)
	switch {
	case l.Range != nil && l.Family == FamilyJava:
		return FormatJavaEPK
	case l.Range != nil:
		return FormatDotNetEPK
	case l.V2:
		return FormatV2
	case byRID:
		return FormatDotNetPK
	default:
		return FormatJavaPK
	}
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
func Inventory(documents []LeaseDocument) []FoundProcessor {
	byPrefix := make(map[string][]*LeaseDocument)
	for _, d := range documents {
		prefix, rest := splitLeaseID(d.ID)
		if prefix == "" || d.Err != nil && isMarker(rest) {
			continue
		}
		d.Token = cmp.Or(d.Token, rest)
		byPrefix[prefix] = append(byPrefix[prefix], &d)
	}
	processors := make([]FoundProcessor, 0, len(byPrefix))
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		found := byPrefix[prefix]
		formats, modes := make(map[Format]bool), make(map[Mode]bool)
		for _, d := range found {
			if d.Err == nil {
				formats[d.Format()], modes[d.Mode] = true, true
			}
		}
		processors = append(processors, FoundProcessor{
			Prefix: prefix, Formats: slices.Sorted(maps.Keys(formats)), Modes: slices.Sorted(maps.Keys(modes)),
			Leases: newestOfEach(found),
		})
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

// isMarker reports whether a document that is no lease is one of the two markers, ".info" and
// ".lock", that the SDKs keep for a processor (azure-cosmos-dotnet-v3,
// DocumentServiceLeaseStoreCosmos.cs). Their ids have a ".." only if a name has one.
func isMarker(end string) bool {
	return strings.HasSuffix(end, ".info") || strings.HasSuffix(end, ".lock")
}
