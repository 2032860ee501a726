package changefeed

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The statuses of HTTP that count here, so that the domain needs nothing of it.
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

// The substatus codes that change what an answer means.
const (
	substatusRangeGone       = 1002 // with 410: the partition key range was split or merged; with 404: the session is not available yet
	substatusCompletingSplit = 1007 // with 410: the same, while it happens
)

// Answer is what the service said to one read of a lease's change feed.
type Answer struct {
	Status       int
	Substatus    int       // x-ms-substatus; 0 where absent
	SessionToken string    // x-ms-session-token
	ContainerRID string    // x-ms-content-path: the RID of the container; "" where absent
	Date         time.Time // Date; zero where absent
	Body         []byte
}

// Outcome is what an answer asks the reader to do.
type Outcome int

// The outcomes of a read (the table of DESIGN 6).
const (
	Answered  Outcome = iota // 200 or 304: Measure it
	Gone                     // the partition key range is no more: read the leases again, then its children
	Transient                // the service asks for patience: try again within the tick
	Refused                  // asking again would not help
)

// OutcomeOf sorts an answer by its status and substatus.
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

// Reading is what one answer says of a partition.
type Reading struct {
	Lag         int64  // pending transactions
	Age         *int64 // seconds since the oldest pending change was written; nil where nothing is pending or the times are missing
	Approximate bool   // something is pending, but the answer does not say how much
	SessionLSN  *int64 // newest LSN of the partition key range; nil where the answer has none
	FirstLSN    *int64 // LSN of the oldest pending change; nil where nothing is pending or it has none
}

// Measure reads an answer of a mode's change feed whose outcome is Answered. It
// fails where the body is not a page of a change feed: then the lag is unknown.
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
	// The .NET estimator takes an LSN below 1 for a change that is pending all
	// the same, and an unreadable session for none: a change that was delivered
	// is always pending.
	if r.FirstLSN == nil || r.SessionLSN == nil {
		r.Lag, r.Approximate = 1, true
		return r, nil
	}
	r.Lag = 1
	if *r.SessionLSN > *r.FirstLSN { // compared first: the difference from a senseless session may overflow
		r.Lag += *r.SessionLSN - *r.FirstLSN
	}
	return r, nil
}

// item is what counts of a changed document. encoding/json matches the names
// whatever their case, as the .NET estimator does.
type item struct {
	LSN json.RawMessage `json:"_lsn"`
	TS  json.RawMessage `json:"_ts"`
}

// version is what counts of an item of the full-fidelity feed.
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
	// A change whose LSN cannot be read is a change all the same.
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

// age is the time between the write of the item and the answer: both are the
// service's clock, so that ours does not matter.
func (i *item) age(answered time.Time) *int64 {
	written, err := strconv.ParseInt(string(i.TS), 10, 64)
	if err != nil || answered.IsZero() {
		return nil
	}
	age := max(0, answered.Unix()-written)
	return &age
}
