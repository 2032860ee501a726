package changefeedprocessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// place is where the changes of a lease are: a partition key range, or a part of one.
type place struct {
	rangeID string
	part    changefeed.Range // zero: all of the range
}

// feed is the change feed of the monitored container.
type feed struct {
	container *azcosmos.ContainerClient
	policy    *feedPolicy
	path      string // of the container, as requests have it
	name      string // of the container, for errors
	mode      changefeed.Mode
}

// page is an answer of the feed.
type page struct {
	status       int // 200 or 304
	items        []json.RawMessage
	continuation string // ETag: where the next page begins
	charge       float64
	header       http.Header
}

// requestTimeout is how long an answer is waited for: as long as .NET waits for the gateway
// (HttpTimeoutPolicyDefault.cs). A request that hangs would hold its lease, which is renewed, for ever.
const requestTimeout = 65 * time.Second

// read reads what follows a position.
func (f *feed) read(ctx context.Context, r feedRequest, most int) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.mode = f.mode
	answer, err := f.container.ReadChangeFeed(context.WithValue(ctx, readKey{}, &r),
		&azcosmos.ChangeFeedOptions{FeedRange: sliver(), MaxItemCount: int32(min(most, 1<<30))})
	if err != nil {
		return page{}, fmt.Errorf("reading range %s of %s: %w", r.place.rangeID, f.name, brief(err))
	}
	next := page{status: answer.RawResponse.StatusCode, header: answer.RawResponse.Header, charge: float64(answer.RequestCharge)}
	next.continuation = next.header.Get("ETag")
	for _, item := range answer.Items {
		next.items = append(next.items, item)
	}
	return next, nil
}

// ranges returns the partition key ranges, as they are now or as they were learned last.
func (f *feed) ranges(ctx context.Context, now bool) (changefeed.Ranges, error) {
	if known, ok := f.policy.route(f.path).known(0); ok && !now {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ranges, err := f.policy.fresh(ctx, f.container, f.path)
	if err != nil {
		return nil, fmt.Errorf("reading the partition key ranges of %s: %w", f.name, brief(err))
	}
	return ranges, nil
}

// errGone says that a lease has to be replaced: its range was split or merged.
var errGone = errors.New("its partition key range was split or merged")

// locate finds where the changes of a lease are. The error wraps errGone if the lease has to be
// replaced: one of a range that is no more, and an EPK lease whose keys are in several ranges. What was
// learned of the ranges is not enough if it is to be their state now.
func (f *feed) locate(ctx context.Context, l *changefeed.Record, now bool) (place, error) {
	for _, now := range []bool{now, true} {
		ranges, err := f.ranges(ctx, now)
		if err != nil {
			return place{}, err
		}
		if shares, exists := ranges.Shares(&l.Lease); exists {
			return placeOf(shares[0]), nil
		}
	}
	return place{}, fmt.Errorf("lease %s: %w", l.ID, errGone)
}

// placeOf is where a share is read.
func placeOf(s changefeed.Share) place { return place{s.Of.ID, s.Part()} }

// statusOf returns the HTTP status and substatus of an error; 0 if it has none.
func statusOf(err error) (status, sub int) {
	if answer, ok := errors.AsType[answerError](err); ok {
		return answer.status, answer.substatus
	}
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return response.StatusCode, substatus(response.RawResponse)
	}
	return 0, 0
}

// transient reports whether a request may succeed if it is made again: the service says so, or it
// could not be reached.
func transient(err error) bool {
	for _, final := range []error{errMissing, errExists, errChanged, errGone, ErrLeaseLost, changefeed.ErrNotALease} {
		if errors.Is(err, final) {
			return false
		}
	}
	status, sub := statusOf(err)
	if status == 0 {
		_, never := errors.AsType[interface {
			error
			NonRetriable()
		}](err)
		return !never // azcore says so of what cannot be signed
	}
	return changefeed.OutcomeOf(status, sub) == changefeed.Transient
}

// throttled reports whether the service answered, and says that a request may succeed if it is made again.
func throttled(err error) bool {
	status, _ := statusOf(err)
	return status != 0 && transient(err)
}

// retryAfter is how long the service wants a request to wait; otherwise is for an error that does not
// say.
func retryAfter(err error, otherwise time.Duration) time.Duration {
	response, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || response.RawResponse == nil {
		return otherwise
	}
	if ms, err := strconv.ParseFloat(response.RawResponse.Header.Get("x-ms-retry-after-ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, float64(time.Hour/time.Millisecond)) * float64(time.Millisecond))
	}
	return otherwise
}

// brief says in one line what azcosmos shows as the whole answer.
func brief(err error) error {
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return briefError{response}
	}
	return err
}

type briefError struct{ *azcore.ResponseError }

func (e briefError) Error() string {
	_, sub := statusOf(e.ResponseError)
	return fmt.Sprintf("the account answered with status %d/%d %s", e.StatusCode, sub, e.ErrorCode)
}

func (e briefError) Unwrap() error { return e.ResponseError }
