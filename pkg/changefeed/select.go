package changefeed

import (
	"cmp"
	"slices"
	"strings"
)

// LeaseDocument is a document of a lease container: a lease, or the error of ParseLease.
type LeaseDocument struct {
	Lease
	Err error // wraps ErrNotALease; nil for a lease
}

// Select returns the leases whose id has one of the prefixes, one per lease token and ordered by
// it. Of several with one token the newest counts. There can be several where the lease container's
// partition key is a GUID, which permits documents with the same id, and where the ids were written
// with two spellings of the host.
func Select(documents []LeaseDocument, prefixes []string) []LeaseDocument {
	byToken := make(map[string]int)
	var selected []LeaseDocument
	for _, d := range documents {
		rest, ok := cutPrefixes(d.ID, prefixes)
		if !ok {
			continue
		}
		if d.Token == "" {
			d.Token = rest // from the id, for a document whose token cannot be read
		}
		at, seen := byToken[d.Token]
		switch {
		case !seen:
			byToken[d.Token] = len(selected)
			selected = append(selected, d)
		case d.Newer(selected[at].Lease):
			selected[at] = d
		}
	}
	slices.SortFunc(selected, func(a, b LeaseDocument) int { return compareLeases(a.Lease, b.Lease) })
	return selected
}

func cutPrefixes(id string, prefixes []string) (rest string, ok bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(id, p); ok {
			return rest, true
		}
	}
	return "", false
}

// compareLeases orders PK-range leases by range id, and then EPK leases by their bounds.
func compareLeases(a, b Lease) int {
	switch {
	case a.Range == nil && b.Range == nil:
		return compareTokens(a.Token, b.Token)
	case a.Range == nil:
		return -1
	case b.Range == nil:
		return 1
	default:
		return cmp.Or(CompareEPK(a.Range.Min, b.Range.Min), CompareEPK(a.Range.Max, b.Range.Max))
	}
}

// compareTokens orders partition key range ids, which are decimal numbers.
func compareTokens(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}
