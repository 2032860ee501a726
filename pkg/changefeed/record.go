package changefeed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Record is a lease document that can be written: what ParseLease reads of it, and all of its fields,
// since those that are not known survive every write.
type Record struct {
	Lease
	fields map[string]json.RawMessage
	ETag   string // of the revision that was read or written last; "" for a new one
}

// ReadRecord reads a lease document. The error is that of ParseLease.
func ReadRecord(document []byte) (*Record, error) {
	parsed, err := ParseLease(document)
	l := &Record{Lease: parsed}
	_ = json.Unmarshal(document, &l.fields)            // ParseLease says that it is no object
	l.Owner, l.ETag = l.text("Owner"), l.text("_etag") // the owner as it is written, and not as it may be shown
	return l, err
}

// text returns the value of a field; "" if it is no text.
func (l *Record) text(field string) (text string) {
	_ = json.Unmarshal(l.fields[field], &text)
	return text
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
func (l *Record) Key() string { return cmp.Or(l.text("partitionKey"), l.ID) }

// Copy is a record whose changes leave this one as it is.
func (l *Record) Copy() *Record {
	return &Record{l.Lease, maps.Clone(l.fields), l.ETag}
}

// set sets a field. The values are texts, numbers and ranges, which always have a JSON form.
func (l *Record) set(name string, value any) {
	l.fields[name], _ = json.Marshal(value)
}

// Expired reports whether any host may take the lease: nobody owns it, or the owner has not renewed it
// in time.
func (l *Record) Expired(now time.Time, expiration time.Duration) bool {
	return l.Owner == "" || l.Time.Add(expiration).Before(now)
}

// The timestamps of leases. Java prints no, three, six or nine decimals, and reads any.
const (
	javaTime   = "2006-01-02T15:04:05.000000000Z"
	dotNetTime = "2006-01-02T15:04:05.9999999Z" // ticks of 100 ns
)

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

// PK is a new lease of a partition key range; of Java's EPK processor one of its keys.
func (s Scheme) PK(r PartitionKeyRange, continuation string, now time.Time) *Record {
	if s.Format == FormatJavaEPK {
		return s.EPK(r.Span(), continuation, now)
	}
	return s.create(r.ID, 0, r.Span(), continuation, now)
}

// EPK is a new lease of some keys.
func (s Scheme) EPK(span Range, continuation string, now time.Time) *Record {
	return s.create(span.Min+"-"+span.Max, 1, span, continuation, now)
}

// create makes a lease of a version; continuation "" is none.
func (s Scheme) create(token string, version int, span Range, continuation string, now time.Time) *Record {
	id := s.Prefix + ".." + token
	fields := map[string]any{"id": id, "LeaseToken": token, "Owner": nil, "ContinuationToken": nil, "timestamp": now.UTC().Format(javaTime) + "[UTC]"}
	if s.Keyed {
		fields["partitionKey"] = id
	}
	switch s.Format {
	case FormatJavaEPK:
		fields["version"], fields["feedRange"] = version, map[string]Range{"Range": span}
	case FormatDotNetPK:
		fields["version"], fields["FeedRange"] = version, map[string]Range{"Range": span}
		fields["properties"], fields["timestamp"], fields["Mode"] = struct{}{}, nil, "Incremental Feed"
		if s.Mode == FullFidelity {
			fields["Mode"] = "Full-Fidelity Feed"
		}
	}
	document, _ := json.Marshal(fields) // of texts, numbers and ranges, which always have a JSON form
	l, _ := ReadRecord(document)
	if l.Mode = s.Mode; continuation != "" {
		s.Position(l, continuation)
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
	l.set("ContinuationToken", s.javaContinuation(l.text("ContinuationToken"), *l.Range, etag))
}

// Stamp notes that this host writes the lease.
func (s Scheme) Stamp(l *Record, now time.Time) {
	l.Time = now
	if s.Format != FormatDotNetPK {
		l.set("timestamp", now.UTC().Format(javaTime))
		return
	}
	l.set("timestamp", now.UTC().Format(dotNetTime))
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
		l.Bounds = new(r.Span())
		l.set("FeedRange", map[string]Range{"Range": *l.Bounds})
	}
}

// Successors are the leases that replace one after a split or merge (PartitionSynchronizerCore.cs); none
// if it fits the ranges as they are. After a merge an EPK lease goes on with just the keys that the lease
// had, since no continuation fits those of the others.
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
