package worker

import "time"

// lease is a lease document as version 3 of the .NET SDK writes it. The fields are in its order, and null where it writes
// null.
type lease struct {
	ID           string            `json:"id"`
	Version      int               `json:"version"` // pkVersion or epkVersion
	ETag         string            `json:"_etag,omitempty"`
	Token        string            `json:"LeaseToken"` // id of the partition key range; of an EPK lease its bounds, as min-max
	FeedRange    feedRange         `json:"FeedRange"`
	Owner        *string           `json:"Owner"`             // nil: nobody
	Continuation *string           `json:"ContinuationToken"` // ETag of the last page that was processed; nil: none was
	Properties   map[string]string `json:"properties"`
	Timestamp    *string           `json:"timestamp"` // last update; nil where there was none since the creation
	Mode         string            `json:"Mode"`
	Written      int64             `json:"_ts,omitempty"` // seconds since 1970, by the account's clock
}

// The versions of a lease. One of a partition key range follows that, and is replaced when the range is split or merged. An
// EPK lease stands for a part of the key space, wherever its keys are, and has to be replaced only by a split.
const (
	pkVersion  = 0
	epkVersion = 1
)

// feedRange is how a lease says which part of the key space it covers.
type feedRange struct {
	Range span `json:"Range"`
}

// incrementalMode is the Mode of leases on the latest-version feed.
const incrementalMode = "Incremental Feed"

// newLease is a lease of a partition key range that nobody owns and that continues where the given token says, nil being
// the start.
func newLease(prefix string, r keyRange, continuation *string) lease {
	return lease{
		ID: prefix + ".." + r.ID, Version: pkVersion, Token: r.ID, FeedRange: feedRange{r.span()}, Continuation: continuation,
		Properties: map[string]string{}, Mode: incrementalMode,
	}
}

// newEPKLease is such a lease of a part of the key space.
func newEPKLease(prefix string, s span, continuation *string) lease {
	token := s.Min + "-" + s.Max
	return lease{
		ID: prefix + ".." + token, Version: epkVersion, Token: token, FeedRange: feedRange{s}, Continuation: continuation,
		Properties: map[string]string{}, Mode: incrementalMode,
	}
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
