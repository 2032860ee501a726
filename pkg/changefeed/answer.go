package changefeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The HTTP statuses that matter here, defined so that the domain does not import net/http.
const (
	statusOK                  = 200
	statusNotModified         = 304
	statusNotFound            = 404
	statusRequestTimeout      = 408
	statusGone                = 410
	statusTooManyRequests     = 429
	statusRetryWith           = 449 // a conflict inside the service
	statusInternalServerError = 500
	statusBadGateway          = 502
	statusUnavailable         = 503
	statusGatewayTimeout      = 504
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
	Substatus    int       // x-ms-substatus; 0 where absent
	SessionToken string    // x-ms-session-token
	ContainerRID string    // x-ms-content-path: the RID of the container; "" where absent
	Date         time.Time // Date, in seconds; zero where absent
	Body         []byte
}

// Outcome says what to do about an answer.
type Outcome int

// The outcomes of a read: the rows of docs/lag.md, What each answer counts.
const (
	Answered  Outcome = iota // 200 or 304: Measure reads the lag
	Gone                     // the partition key range was split or merged: read the leases again, then the ranges that replaced it
	Transient                // a temporary error: try again within the tick
	Refused                  // a permanent error: trying again would not help
)

// OutcomeOf returns the outcome of an answer with an HTTP status and a substatus.
func OutcomeOf(status, substatus int) Outcome {
	switch status {
	case statusOK, statusNotModified:
		return Answered
	case statusGone:
		if substatus == substatusRangeGone || substatus == substatusCompletingSplit {
			return Gone
		}
		return Transient
	case statusNotFound:
		if substatus == substatusRangeGone {
			return Transient
		}
		return Refused
	case statusRequestTimeout, statusTooManyRequests, statusRetryWith,
		statusInternalServerError, statusBadGateway, statusUnavailable, statusGatewayTimeout:
		return Transient
	default:
		return Refused
	}
}

// Reading is what one answer says about a partition.
type Reading struct {
	Lag         int64  // pending transactions, at least 0
	Age         *int64 // seconds since the oldest pending change was written; nil where nothing is pending or the times are missing
	Approximate bool   // something is pending, but Lag is not exact
	SessionLSN  *int64 // newest LSN of the partition key range; nil where the answer has none
	FirstLSN    *int64 // LSN of the oldest pending change; nil where nothing is pending or it has none
}

// Measure reads the lag from an answer whose outcome is Answered (docs/lag.md, What each answer
// counts): 0 for a 304 and for a page without items, else session LSN - LSN of the first item + 1,
// at least 1. An LSN that is missing or cannot be read makes it 1, approximate. The error says that
// the body is not a page of a change feed; then the lag is unknown.
func Measure(a Answer, mode Mode) (Reading, error) {
	var r Reading
	if lsn, ok := SessionLSN(a.SessionToken); ok {
		r.SessionLSN = &lsn
	}
	if a.Status == statusNotModified {
		return r, nil
	}
	item, err := firstItem(a.Body, mode)
	if err != nil || item == nil {
		return r, err
	}
	r.Age = item.age(a.Date)
	r.FirstLSN = item.lsn()
	// A change that was delivered is pending, whatever can be read of it. The .NET estimator counts
	// 1 for an item without a readable LSN too, but 0 for a session token that cannot be read
	// (azure-cosmos-dotnet-v3, ChangeFeedEstimatorIterator.cs).
	if r.FirstLSN == nil || r.SessionLSN == nil {
		r.Lag, r.Approximate = 1, true
		return r, nil
	}
	r.Lag = 1
	if *r.SessionLSN > *r.FirstLSN { // compared first, since the difference from an absurd session LSN may overflow
		r.Lag += *r.SessionLSN - *r.FirstLSN
	}
	return r, nil
}

// item has the properties needed of a changed document. encoding/json matches names in any case, as
// the .NET estimator does.
type item struct {
	LSN json.RawMessage `json:"_lsn"`
	TS  json.RawMessage `json:"_ts"`
}

// version has the properties needed of an item of the all-versions-and-deletes feed.
type version struct {
	Metadata struct {
		LSN  json.RawMessage `json:"lsn"`
		CRTS json.RawMessage `json:"crts"`
	} `json:"metadata"`
}

// firstItem returns the oldest change of a page, nil where it has none.
func firstItem(body []byte, mode Mode) (*item, error) {
	var page struct {
		Documents *[]json.RawMessage `json:"Documents"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("the answer is not a page of a change feed: %w", err)
	}
	if page.Documents == nil {
		return nil, errors.New("the answer is not a page of a change feed: it has no Documents")
	}
	if len(*page.Documents) == 0 {
		return nil, nil
	}
	// An item that cannot be read is still a change.
	if mode == FullFidelity {
		var first version
		if json.Unmarshal((*page.Documents)[0], &first) != nil {
			return &item{}, nil
		}
		return &item{LSN: first.Metadata.LSN, TS: first.Metadata.CRTS}, nil
	}
	var first item
	if json.Unmarshal((*page.Documents)[0], &first) != nil {
		return &item{}, nil
	}
	return &first, nil
}

func (i *item) lsn() *int64 {
	text := string(i.LSN)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	lsn, ok := parseLSN(text)
	if !ok || lsn < 1 {
		return nil
	}
	return &lsn
}

// age returns the seconds between the write of the item and the answer, at least 0. Both are of the
// service's clock, so that the local one does not matter. It is nil where either is missing.
func (i *item) age(answered time.Time) *int64 {
	written, err := strconv.ParseInt(string(i.TS), 10, 64)
	if err != nil || answered.IsZero() {
		return nil
	}
	age := max(0, answered.Unix()-written)
	return &age
}
