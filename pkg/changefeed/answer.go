package changefeed

import (
	"strconv"
	"strings"
	"time"
)

// The values of x-ms-substatus that change what an answer means (azure-cosmos-dotnet-v3,
// SubStatusCodes.cs).
const (
	substatusRangeGone       = 1002 // with 410: the partition key range was split or merged; with 404: the read session is not available yet
	substatusCompletingSplit = 1007 // with 410: the partition key range is being split
)

// Answer is the service's answer to one read of the change feed from a lease's position.
type Answer struct {
	Status       int
	Substatus    int       // x-ms-substatus; 0 if absent
	SessionToken string    // x-ms-session-token
	ContainerRID string    // x-ms-content-path: the RID of the container; "" if absent
	Date         time.Time // Date, in seconds; zero if absent
	ETag         string    // position after the page; "" if absent
	Page         Page      // of a 200; zero otherwise
}

// Outcome says what to do about an answer.
type Outcome int

// The outcomes of a read (docs/lag.md, What each answer counts).
const (
	Answered  Outcome = iota // 200 or 304: Measure reads the lag
	Gone                     // the partition key range was split or merged: read the leases again, then the ranges that replaced it
	Transient                // a temporary error: try again within the tick
	Refused                  // a permanent error: trying again would not help
)

// OutcomeOf returns the outcome of an answer with an HTTP status and a substatus. The domain does not import
// net/http, which has names for all of them but 449, a conflict inside the service.
func OutcomeOf(status, substatus int) Outcome {
	switch status {
	case 200, 304:
		return Answered
	case 404:
		if substatus != substatusRangeGone {
			return Refused
		}
	case 408, 429, 449, 500, 502, 503, 504:
	case 410:
		if substatus == substatusRangeGone || substatus == substatusCompletingSplit {
			return Gone
		}
	default:
		return Refused
	}
	return Transient
}

// Reading is what one answer says about a partition.
type Reading struct {
	Lag         int64  // pending transactions, at least 0
	Age         *int64 // seconds since the oldest pending change was written; nil if nothing is pending or the times are missing
	Approximate bool   // something is pending, but Lag is not exact
	More        bool   // a page without changes: what follows its ETag is not known, and Lag is not either
	SessionLSN  *int64 // newest LSN of the partition key range; nil if the answer has none
}

// Measure reads the lag from an answer whose outcome is Answered (docs/lag.md, What each answer
// counts). It is approximate if an LSN is missing, cannot be read, or is below the item's. A 200 without
// items does not say that nothing is pending: only the answer to its ETag tells.
func Measure(a Answer) Reading {
	var r Reading
	if lsn, ok := SessionLSN(a.SessionToken); ok {
		r.SessionLSN = &lsn
	}
	first := a.Page.First
	if a.Status == 304 {
		return r
	}
	r.Lag, r.Approximate, r.More = 1, true, first == nil
	if r.More {
		return r
	}
	if first.Written != nil && !a.Date.IsZero() { // both by the service's clock
		r.Age = new(max(0, a.Date.Unix()-*first.Written))
	}
	if first.LSN != nil && r.SessionLSN != nil && *r.SessionLSN >= *first.LSN {
		// Both are at least 1 here, so that the difference cannot overflow.
		r.Lag, r.Approximate = AddLag(1, *r.SessionLSN-*first.LSN), false
	}
	return r
}

// SessionLSN returns the LSN in a session token, such as "0:123", "0:-1#123" or "0:-1#123#1=100", as the
// .NET estimator reads it (ExtractLsn in ChangeFeedEstimatorIterator.cs); ok is false if there is none.
func SessionLSN(token string) (lsn int64, ok bool) {
	if _, after, found := strings.Cut(token, ":"); found {
		token = after
	}
	parts := strings.SplitN(token, "#", 3)
	return parseLSN(parts[min(1, len(parts)-1)])
}

// ContinuationLSN returns the LSN in a continuation. An ETag of the change feed usually is a quoted
// decimal LSN, but no contract says so; ok is false if it is not.
func ContinuationLSN(etag string) (lsn int64, ok bool) {
	etag = strings.TrimPrefix(etag, "W/")
	return parseLSN(strings.Trim(etag, `"`))
}

// parseLSN reads a decimal number, with blanks around it, as the .NET estimator does.
func parseLSN(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
