package changefeed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Record is a lease document that can be written: what ParseLease reads of it, and all of its fields,
// since those that are not known survive every write.
type Record struct {
	Lease
	fields map[string]json.RawMessage
	ETag   string // of the revision that was read or written last; "" for a new one
}

// ReadRecord reads a lease document. The error wraps ErrNotALease.
func ReadRecord(document []byte) (*Record, error) {
	parsed, err := ParseLease(document)
	l := &Record{Lease: parsed}
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(document, &l.fields); err != nil {
		return l, err
	}
	_ = json.Unmarshal(l.fields["Owner"], &l.Owner) // as it is written, and not as it may be shown
	_ = json.Unmarshal(l.fields["_etag"], &l.ETag)  // every document of an account has one
	return l, nil
}

// Document is what is written. The account adds its own properties.
func (l *Record) Document() ([]byte, error) {
	fields := maps.Clone(l.fields)
	for _, own := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
		delete(fields, own)
	}
	return json.Marshal(fields)
}

// Key is the value of the lease container's partition key.
func (l *Record) Key() string {
	var key string
	_ = json.Unmarshal(l.fields["partitionKey"], &key) // stays empty if the lease has none
	return cmp.Or(key, l.ID)
}

// Copy is a record whose changes leave this one as it is.
func (l *Record) Copy() *Record {
	next := *l
	next.fields = maps.Clone(l.fields)
	return &next
}

// set sets a field. The values are texts, numbers and ranges, which always have a JSON form.
func (l *Record) set(name string, value any) {
	l.fields[name], _ = json.Marshal(value)
}

// Expired reports whether any host may take the lease: nobody owns it, or the owner has not renewed it
// in time (EqualPartitionsBalancingStrategy.cs).
func (l *Record) Expired(now time.Time, expiration time.Duration) bool {
	return l.Owner == "" || l.Time.Add(expiration).Before(now)
}

// Scheme makes and changes lease documents of one processor, as the SDK of their format does
// (docs/lag.md, Formats of leases).
type Scheme struct {
	Format       Format // FormatDotNetPK, whose EPK leases come of merges, FormatJavaPK or FormatJavaEPK
	Prefix       string // of the ids, without the dots
	ContainerRID string // of the monitored container
	Keyed        bool   // the lease container is partitioned by /partitionKey
	Mode         Mode
	Start        StartFrom // where a lease without a continuation begins
}

// rangeJSON is how a lease holds its range.
type rangeJSON struct{ Range Range }

// PK is a new lease of a partition key range; of Java's EPK processor one of its keys.
func (s Scheme) PK(r PartitionKeyRange, continuation string, now time.Time) *Record {
	if s.Format == FormatJavaEPK {
		return s.EPK(r.Span(), continuation, now)
	}
	l := s.create(r.ID, now)
	if s.Format == FormatDotNetPK {
		l.set("version", 0)
		l.bound(r.Span())
	}
	return s.at(l, continuation)
}

// bound has a .NET lease of a partition key range say its keys.
func (l *Record) bound(span Range) {
	l.Bounds = &span
	l.set("FeedRange", rangeJSON{span})
}

// EPK is a new lease of some keys.
func (s Scheme) EPK(span Range, continuation string, now time.Time) *Record {
	l, field := s.create(span.Min+"-"+span.Max, now), "feedRange"
	if s.Format == FormatDotNetPK {
		field = "FeedRange"
	}
	l.Range = &span
	l.set("version", 1)
	l.set(field, rangeJSON{span})
	return s.at(l, continuation)
}

// at sets the continuation of a new lease; "" is none.
func (s Scheme) at(l *Record, continuation string) *Record {
	if continuation != "" {
		s.Position(l, continuation)
	}
	return l
}

// create makes a lease with what all new leases have.
func (s Scheme) create(token string, now time.Time) *Record {
	l := &Record{Lease: Lease{ID: s.Prefix + ".." + token, Token: token, Mode: s.Mode}, fields: map[string]json.RawMessage{}}
	l.set("id", l.ID)
	l.set("LeaseToken", token)
	l.set("Owner", nil)
	l.set("ContinuationToken", nil)
	if s.Keyed {
		l.set("partitionKey", l.ID)
	}
	if s.Format != FormatDotNetPK {
		l.set("timestamp", JavaCreated(now))
		return l
	}
	l.set("properties", struct{}{})
	l.set("timestamp", nil)
	l.set("Mode", "Incremental Feed")
	if s.Mode == FullFidelity {
		l.set("Mode", "Full-Fidelity Feed")
	}
	return l
}

// Own sets the owner; "" is nobody.
func (s Scheme) Own(l *Record, owner string) {
	l.Owner = owner
	if l.set("Owner", owner); owner == "" {
		l.set("Owner", nil)
	}
}

// Position sets the continuation: as the ETag is, or in the state that Java's EPK leases have.
func (s Scheme) Position(l *Record, etag string) {
	l.Continuation = etag
	if s.Format != FormatJavaEPK {
		l.set("ContinuationToken", etag)
		return
	}
	var before string
	_ = json.Unmarshal(l.fields["ContinuationToken"], &before) // null before the first checkpoint
	l.set("ContinuationToken", s.javaContinuation(before, *l.Range, etag))
}

// Stamp notes that this host writes the lease.
func (s Scheme) Stamp(l *Record, now time.Time) {
	l.Time = now
	if s.Format != FormatDotNetPK {
		l.set("timestamp", JavaTime(now))
		return
	}
	l.set("timestamp", DotNetTime(now))
	// Version 3 completes a lease of V2 when it writes it (DocumentServiceLeaseCore.cs).
	for name, value := range map[string]any{"LeaseToken": l.Token, "version": 0} {
		if _, has := l.fields[name]; !has {
			l.set(name, value)
		}
	}
}

// Bound has a .NET lease of before leases said their range say it (AcquireAsync of
// DocumentServiceLeaseManagerCosmos.cs).
func (s Scheme) Bound(l *Record, ranges Ranges) {
	if s.Format != FormatDotNetPK || l.Bounds != nil || l.Range != nil {
		return
	}
	if r, ok := ranges.Find(l.Token); ok {
		l.bound(r.Span())
	}
}

// SchemePrefix is what the ids of a format's new leases begin with, without the dots: .NET has the host
// in lower case, and Java's PK leases have names in place of RIDs. prefixes are those of the identity.
func SchemePrefix(format Format, prefixes []Prefix) (prefix string) {
	for _, p := range prefixes { // as given first, and then in lower case if that differs
		if (p.Family == FamilyJava) == (format == FormatJavaPK) && (prefix == "" || format == FormatDotNetPK) {
			prefix = strings.TrimSuffix(p.Text, "..")
		}
	}
	return prefix
}

// Successors are the leases that replace one after a split or merge (PartitionSynchronizerCore.cs); none
// if it fits the ranges as they are. A range that was split is replaced by the ranges that it became. After
// a merge an EPK lease goes on with just the keys that the lease had, since no continuation fits those of
// the others. An EPK lease whose keys are in several ranges is cut at their bounds.
func (s Scheme) Successors(ranges Ranges, gone Lease, continuation string, now time.Time) (wanted []*Record, err error) {
	shares, exists := ranges.Shares(&gone)
	switch {
	case exists:
		return nil, nil
	case len(shares) == 0:
		return nil, fmt.Errorf("no partition key range has keys of lease %s", gone.ID)
	case len(shares) == 1 && gone.Range == nil && gone.Bounds == nil:
		return nil, fmt.Errorf("lease %s does not say its keys, and its range was merged: only leases with bounds can follow a merge", gone.ID)
	}
	for _, part := range shares {
		if gone.Range == nil && len(shares) > 1 && part.Keys.Equal(part.Of.Span()) {
			wanted = append(wanted, s.PK(part.Of, continuation, now))
		} else {
			wanted = append(wanted, s.EPK(part.Keys, continuation, now))
		}
	}
	return wanted, nil
}

// Uncovered returns the parts of ranges that no lease covers; none if the ranges are older than a lease.
func Uncovered(ranges Ranges, leases []*Record) (missing []Share) {
	all := make([]*Lease, len(leases))
	for i, l := range leases {
		all[i] = &l.Lease
	}
	holes, _ := ranges.Uncovered(all)
	for _, hole := range holes {
		missing = append(missing, ranges.within(hole)...)
	}
	return missing
}
