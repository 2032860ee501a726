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

// Documents are the leases of a container, in the order of their ids.
type Documents []LeaseDocument

// Sorted puts leases in the order of their ids, in place.
func Sorted(documents []LeaseDocument) Documents {
	byID := func(a, b LeaseDocument) int { return strings.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(documents, byID) {
		slices.SortStableFunc(documents, byID)
	}
	return documents
}

// under returns those whose id has a prefix.
func (d Documents) under(prefix string) Documents {
	from, _ := slices.BinarySearchFunc(d, prefix, func(l LeaseDocument, prefix string) int { return strings.Compare(l.ID, prefix) })
	to := from
	for to < len(d) && strings.HasPrefix(d[to].ID, prefix) {
		to++
	}
	return d[from:to]
}

// Select returns the leases that belong to a processor, one per lease token and ordered by it: those
// whose id is one of the prefixes and a lease token, and which a family wrote. With FamilyAny, the
// leases of the family that wrote last count; the error is ErrMixed if both write.
//
// Of several leases with one token the newest counts. There can be several if the lease container's
// partition key is a GUID, which permits documents with the same id, or if the ids were written with
// two spellings of the host.
func (d Documents) Select(prefixes []Prefix, family Family) ([]LeaseDocument, error) {
	own := make(map[Family][]*LeaseDocument, 2)
	for i, p := range prefixes {
		under := d.under(p.Text)
		for j := range under {
			l := &under[j]
			rest, ok := cutPrefix(l, p)
			if !ok || slices.ContainsFunc(prefixes[:i], func(before Prefix) bool { _, seen := cutPrefix(l, before); return seen }) {
				continue
			}
			if l.Token == "" {
				named := *l
				named.Token = rest // from the id, for a document whose token cannot be read
				l = &named
			}
			of := cmp.Or(p.Family, l.Family, FamilyDotNet)
			own[of] = append(own[of], l)
		}
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

// cutPrefix returns what follows a prefix in the id of a lease. A lease token has no "..", so that the
// leases of container "orders..eu" are not those of "orders".
func cutPrefix(l *LeaseDocument, p Prefix) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(l.ID, p.Text)
	return rest, ok && !strings.Contains(rest, "..")
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
