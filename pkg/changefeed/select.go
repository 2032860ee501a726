package changefeed

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// LeaseDocument is a document of a lease container: a lease, or the error of ParseLease.
type LeaseDocument struct {
	Lease
	Err error // wraps ErrNotALease; nil for a lease
}

// mixedWithin is how close the newest writes of two families have to be for both to count as live: a
// lease is renewed every 17 s and expires after 60 s, in all SDKs.
const mixedWithin = 2 * time.Minute

// ErrMixed says that both .NET and Java keep leases under one identity at the same time: one of them is
// somebody else's, and nothing tells which.
var ErrMixed = errors.New("leases of .NET and of Java are live under one prefix, so that either may be another processor's")

// Select returns the leases that belong to a processor, one per lease token and ordered by it: those
// whose id is one of the prefixes and a lease token, and which a family wrote. With FamilyAny, the
// leases of the family that wrote last count; the error is ErrMixed where both write.
//
// Of several leases with one token the newest counts. There can be several where the lease container's
// partition key is a GUID, which permits documents with the same id, and where the ids were written with
// two spellings of the host.
func Select(documents []LeaseDocument, prefixes []Prefix, family Family) ([]LeaseDocument, error) {
	own := make(map[Family][]*LeaseDocument, 2)
	for i := range documents {
		d := &documents[i]
		rest, of, ok := cutPrefixes(d, prefixes)
		if !ok {
			continue
		}
		if d.Token == "" {
			named := *d
			named.Token = rest // from the id, for a document whose token cannot be read
			d = &named
		}
		own[of] = append(own[of], d)
	}
	if family == FamilyAny {
		var err error
		if family, err = newest(own); err != nil {
			return nil, err
		}
	}
	return newestOfEach(own[family]), nil
}

// newest returns the family that wrote a lease last.
func newest(own map[Family][]*LeaseDocument) (Family, error) {
	written := func(f Family) (last time.Time) {
		for _, d := range own[f] {
			if d.Time.After(last) {
				last = d.Time
			}
		}
		return last
	}
	switch dotnet, java := written(FamilyDotNet), written(FamilyJava); {
	case len(own[FamilyJava]) == 0:
		return FamilyDotNet, nil
	case len(own[FamilyDotNet]) == 0:
		return FamilyJava, nil
	case owned(own[FamilyDotNet]) && owned(own[FamilyJava]) && dotnet.Sub(java).Abs() < mixedWithin:
		return FamilyAny, ErrMixed
	case java.After(dotnet):
		return FamilyJava, nil
	default:
		return FamilyDotNet, nil
	}
}

func owned(leases []*LeaseDocument) bool {
	return slices.ContainsFunc(leases, func(d *LeaseDocument) bool { return d.Owner != "" })
}

// newestOfEach returns the newest lease of each token, ordered by token.
func newestOfEach(leases []*LeaseDocument) []LeaseDocument {
	newest := make(map[string]*LeaseDocument, len(leases))
	for _, d := range leases {
		if last, seen := newest[d.Token]; !seen || d.Newer(last.Lease) {
			newest[d.Token] = d
		}
	}
	if len(newest) == 0 {
		return nil
	}
	selected := make([]LeaseDocument, 0, len(newest))
	for _, d := range leases {
		if newest[d.Token] == d {
			selected = append(selected, *d)
		}
	}
	slices.SortFunc(selected, func(a, b LeaseDocument) int { return compareLeases(a.Lease, b.Lease) })
	return selected
}

// cutPrefixes returns what follows the prefix in the id of a lease, and who wrote it. A lease token has
// no "..", so that the leases of container "orders..eu" are not those of "orders".
func cutPrefixes(d *LeaseDocument, prefixes []Prefix) (rest string, of Family, ok bool) {
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(d.ID, p.Text)
		if !ok || strings.Contains(rest, "..") {
			continue
		}
		switch {
		case p.Family != FamilyAny:
			return rest, p.Family, true
		case d.Family != FamilyAny:
			return rest, d.Family, true
		}
		return rest, FamilyDotNet, true
	}
	return "", FamilyAny, false
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
