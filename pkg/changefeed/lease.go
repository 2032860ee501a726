package changefeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Lease is one document of a lease container: how far a change feed processor
// has come with one partition, and who works on it.
type Lease struct {
	ID           string
	Token        string    // the partition key range id of a PK-range lease
	Owner        string    // "" where nobody owns it
	Continuation string    // ETag of the last page that was processed, verbatim; "" where there was no checkpoint yet
	Time         time.Time // when the owner last renewed it; zero where unknown
	TS           int64     // _ts: when the document was last written, seconds since 1970
}

// LeaseFields are the properties of a lease document that ParseLease reads, for
// a query that projects them.
var LeaseFields = []string{"id", "LeaseToken", "PartitionId", "Owner", "ContinuationToken", "timestamp", "version", "_ts"}

// ErrNotALease says that a document has the id of a lease but not its shape.
var ErrNotALease = errors.New("not a lease that can be read")

// ParseLease reads a PK-range lease as the .NET v3 SDK, the Java SDK and the
// legacy V2 library (which says PartitionId for LeaseToken) write it. On an
// error, which wraps ErrNotALease, the Lease holds what could be read: its ID
// and Token at best, so that the partition can be reported as unknown.
func ParseLease(document []byte) (Lease, error) {
	var d struct {
		ID           string          `json:"id"`
		LeaseToken   *string         `json:"LeaseToken"`
		PartitionID  *string         `json:"PartitionId"`
		Owner        *string         `json:"Owner"`
		Continuation json.RawMessage `json:"ContinuationToken"`
		Timestamp    json.RawMessage `json:"timestamp"`
		Version      json.RawMessage `json:"version"`
		TS           int64           `json:"_ts"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Lease{ID: d.ID}, fmt.Errorf("%w: %v", ErrNotALease, err)
	}
	l := Lease{ID: d.ID, TS: d.TS}
	if d.Owner != nil {
		l.Owner = *d.Owner
	}
	switch {
	case d.LeaseToken != nil && *d.LeaseToken != "":
		l.Token = *d.LeaseToken
	case d.PartitionID != nil && *d.PartitionID != "":
		l.Token = *d.PartitionID
	default:
		return l, fmt.Errorf("%w: it has neither LeaseToken nor PartitionId", ErrNotALease)
	}
	var ok bool
	if l.Continuation, ok = optionalString(d.Continuation); !ok {
		return l, fmt.Errorf("%w: its ContinuationToken is not a string", ErrNotALease)
	}
	l.Time = leaseTime(d.Timestamp, d.TS)
	// The discriminator of the .NET SDK: 1 is an EPK lease, anything else is not.
	if string(d.Version) == "1" {
		return l, fmt.Errorf("%w: it covers a range of effective partition keys (version 1), which this version of feedscale cannot measure", ErrNotALease)
	}
	return l, nil
}

// optionalString decodes a JSON string; null and absent are "".
func optionalString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// leaseTime reads the timestamp of a lease. .NET leaves it null until the first
// renewal, and Java appends a zone in brackets when it creates a lease; where
// it cannot be read, the document's own write time says when the owner was there.
func leaseTime(raw json.RawMessage, ts int64) time.Time {
	if s, ok := optionalString(raw); ok && s != "" {
		s, _, _ = strings.Cut(s, "[")
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t.UTC()
		}
	}
	if ts > 0 {
		return time.Unix(ts, 0).UTC()
	}
	return time.Time{}
}

// newer tells whether a counts before b, of two leases of the same partition:
// the newer timestamp, then the newer _ts (DESIGN 6).
func (l Lease) newer(b Lease) bool {
	if !l.Time.Equal(b.Time) {
		return l.Time.After(b.Time)
	}
	return l.TS > b.TS
}
