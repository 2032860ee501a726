package changefeed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// LeasePlan is a lease, and what has to be read to measure it.
type LeasePlan struct {
	LeaseDocument
	Shares    []Share // to be read, from the lease's own position; none for a leftover
	Splitting bool    // the range of the lease is gone: the greatest of the shares counts
	Leftover  bool    // other leases replaced it: nothing of it counts

	Readings []Reading // of each share, once it was read
	Errs     []error   // of each share; ErrMoved if its range is gone as well
}

// ErrMoved says of a partition key range that it was split or merged, or is about to be.
var ErrMoved = errors.New("is being split or merged and cannot be read: try again in a minute")

// Plan says what has to be read to measure leases, by the partition key ranges as they are now.
func Plan(leases []LeaseDocument, ranges Ranges) []*LeasePlan {
	planned := make([]*LeasePlan, len(leases))
	for i, d := range leases {
		planned[i] = &LeasePlan{LeaseDocument: d}
	}
	Locate(planned, ranges, true)
	return planned
}

// Locate finds the shares of leases. Keys for which a newer lease exists are counted with that lease. A PK-range
// lease is read where it says unless the ranges are those of now; the .NET SDK routes alike
// (RequestInvokerHandler.cs).
func Locate(planned []*LeasePlan, ranges Ranges, now bool) {
	markLeftovers(planned, ranges)
	for _, p := range planned {
		switch {
		case p.Err != nil || p.Leftover:
		case p.Range == nil && !now:
			p.Shares = []Share{{Of: PartitionKeyRange{ID: p.Token}}}
		default:
			p.locate(planned, ranges)
		}
	}
}

// markLeftovers finds the leases that a newer one covers exactly: one of the two is by range id and one by
// bounds. A processor has such pairs while it goes over from PK-range to EPK leases.
func markLeftovers(planned []*LeasePlan, ranges Ranges) {
	for _, epk := range planned {
		if epk.Range == nil || epk.Err != nil {
			continue
		}
		for _, pk := range planned {
			if pk.Range != nil || pk.Err != nil {
				continue
			}
			keys, exists := pk.keys(ranges)
			switch known := exists || pk.Bounds != nil; { // else they may be a part of these keys, as after a merge
			case !keys.Equal(*epk.Range):
			case known && pk.Newer(epk.Lease):
				epk.Leftover = true
			default:
				pk.Leftover = true
			}
		}
	}
}

// locate finds the shares of a lease. If its range is gone, the lease is splitting, and shares whose keys others
// of all count are left out. It is a leftover if none remains.
func (p *LeasePlan) locate(all []*LeasePlan, ranges Ranges) {
	var exists bool
	p.Shares, exists = ranges.Shares(&p.Lease)
	switch {
	case exists:
		return
	case len(p.Shares) == 0 && p.Range != nil:
		p.Err = fmt.Errorf("no partition key range has keys from %q to %q", p.Range.Min, p.Range.Max)
		return
	}
	var covered []Range
	for _, other := range all {
		if keys, ok := other.replaces(p.Lease, ranges); ok && other != p && !other.Leftover {
			covered = append(covered, keys)
		}
	}
	left := slices.DeleteFunc(slices.Clone(p.Shares), func(s Share) bool { return len(s.Keys.Gaps(covered)) == 0 })
	p.Splitting, p.Leftover = true, len(left) == 0 && len(p.Shares) > 0
	p.Shares = left
}

// replaces reports whether a lease replaced another one whose range is gone, and for which keys: a lease
// whose range exists does, and one for a part of the keys. The relation is never mutual, so that of two
// leases one is always counted.
func (l Lease) replaces(old Lease, ranges Ranges) (keys Range, ok bool) {
	of, _ := old.keys(ranges)
	own, exists := l.keys(ranges)
	return own, exists || !own.Equal(of) && len(own.Gaps([]Range{of})) == 0
}

// keys returns the bounds of all that a lease stands for.
func (l Lease) keys(ranges Ranges) (keys Range, exists bool) {
	shares, exists := ranges.Shares(&l)
	if len(shares) > 0 {
		keys = Range{Min: shares[0].Keys.Min, Max: shares[len(shares)-1].Keys.Max}
	}
	return keys, exists
}

// Settle completes a plan whose shares were read, by the table of docs/lag.md (What each answer counts):
// LeasePlan.Reading then tells what each lease counts.
func Settle(planned []*LeasePlan) {
	parts := map[string][]*Reading{} // with something pending, by the range that they are of
	for _, p := range planned {
		p.Err = cmp.Or(p.Err, errors.Join(p.Errs...))
		p.Splitting = p.Splitting || errors.Is(p.Err, ErrMoved)
		if !p.Splitting && !p.Leftover && len(p.Shares) == 1 && p.Readings[0].Lag > 0 && p.Shares[0].Part() != (Range{}) {
			id := p.Shares[0].Of.ID
			parts[id] = append(parts[id], &p.Readings[0])
		}
	}
	for _, of := range parts {
		scaleParts(of)
	}
}

// Reading returns what a lease counts that has a position; nil if that is unknown. The ranges that replaced
// its range begin with the LSNs of that, so that a sum would count the same twice. The greatest counts, and
// at least 1, since only a running processor can replace the lease; 1 if one of them is gone in turn.
func (p *LeasePlan) Reading() *Reading {
	switch {
	case p.Splitting:
		greatest := Reading{Lag: 1, Approximate: true}
		for _, r := range p.Readings {
			greatest.Age = Greater(greatest.Age, r.Age)
			if r.Lag >= greatest.Lag {
				greatest.Lag, greatest.SessionLSN = r.Lag, r.SessionLSN
			}
		}
		if errors.Is(p.Err, ErrMoved) {
			greatest.Lag = 1
		}
		return &greatest
	case p.Err != nil:
		return nil
	default:
		return &p.Readings[0]
	}
}

// scaleParts scales down the lags of leases that each cover a part of the same range, all above 0. Each is
// measured against the LSN of the whole range, and counts the transactions of the other parts too. Together
// they have no more pending than the greatest, which also gets what rounding down leaves.
func scaleParts(parts []*Reading) {
	greatest := slices.MaxFunc(parts, func(a, b *Reading) int { return cmp.Compare(a.Lag, b.Lag) })
	sum := 0.0 // with an absurd session LSN the sum of two lags may exceed 64 bits
	for _, r := range parts {
		sum += float64(r.Lag)
	}
	most := greatest.Lag
	left := most
	for _, r := range parts {
		r.Lag, r.Approximate = max(1, int64(float64(r.Lag)*float64(most)/sum)), true
		left -= r.Lag
	}
	greatest.Lag += max(0, left)
}

// maxEmptyPages is how many pages without a change are read on from until something counts as pending:
// the service's first answer to a start time is one (azure-cosmos-dotnet-v3#755).
const maxEmptyPages = 4

// ReadOn measures what follows a position, and reads on if a page is empty: only a 304 says that
// nothing follows. The error is ErrMoved if the range was split or merged.
func ReadOn(p Position, read func(Position) (Answer, error)) (reading Reading, _ error) {
	for range maxEmptyPages {
		answer, err := read(p)
		if err != nil {
			return Reading{}, err
		}
		switch OutcomeOf(answer.Status, answer.Substatus) {
		case Answered:
		case Gone:
			return Reading{}, fmt.Errorf("range %s %w", p.Range, ErrMoved)
		default:
			return Reading{}, fmt.Errorf("the change feed answered with status %d/%d", answer.Status, answer.Substatus)
		}
		p.Continuation = answer.ETag
		if reading = Measure(answer); !reading.More || p.Continuation == "" {
			break
		}
	}
	return reading, nil
}
