package worker

import "time"

// lease is a lease document as version 3 of the .NET SDK writes it for a partition key range. The fields are in its order,
// and null where it writes null.
type lease struct {
	ID           string            `json:"id"`
	Version      int               `json:"version"` // 0: of a partition key range
	ETag         string            `json:"_etag,omitempty"`
	Token        string            `json:"LeaseToken"` // id of the partition key range
	FeedRange    feedRange         `json:"FeedRange"`
	Owner        *string           `json:"Owner"`             // nil: nobody
	Continuation *string           `json:"ContinuationToken"` // ETag of the last page that was processed; nil: none was
	Properties   map[string]string `json:"properties"`
	Timestamp    *string           `json:"timestamp"` // last update; nil where there was none since the creation
	Mode         string            `json:"Mode"`
	Written      int64             `json:"_ts,omitempty"` // seconds since 1970, by the account's clock
}

// feedRange is the part of the key space that a lease covers.
type feedRange struct {
	Range struct {
		Min string `json:"min"`
		Max string `json:"max"`
	} `json:"Range"`
}

// incrementalMode is the Mode of leases on the latest-version feed.
const incrementalMode = "Incremental Feed"

// newLease is a lease that nobody owns and that continues where the given token says, nil being the start.
func newLease(prefix string, r keyRange, continuation *string) lease {
	l := lease{ID: prefix + ".." + r.ID, Token: r.ID, Continuation: continuation, Properties: map[string]string{}, Mode: incrementalMode}
	l.FeedRange.Range.Min, l.FeedRange.Range.Max = r.Min, r.Max
	return l
}

// timestampLayout is how the SDK writes a time: ticks of 100 ns, without zeros at the end.
const timestampLayout = "2006-01-02T15:04:05.9999999Z"

func (l *lease) stamp(now time.Time) {
	text := now.UTC().Format(timestampLayout)
	l.Timestamp = &text
}

// updated is when the lease was last written by a host, or created.
func (l *lease) updated() time.Time {
	if l.Timestamp != nil {
		if t, err := time.Parse(time.RFC3339Nano, *l.Timestamp); err == nil {
			return t
		}
	}
	return time.Unix(l.Written, 0)
}

func (l *lease) ownedBy(host string) bool { return l.Owner != nil && *l.Owner == host }

// free tells whether anybody may take the lease: nobody owns it, or whoever does has not renewed it in time.
func (l *lease) free(now time.Time, expiration time.Duration) bool {
	return l.Owner == nil || *l.Owner == "" || l.updated().Add(expiration).Before(now)
}

func same(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
