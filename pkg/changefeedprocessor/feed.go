package changefeedprocessor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// feed is the change feed of the monitored container.
type feed struct {
	container *azcosmos.ContainerClient
	route     *route
	name      string // of the container, for errors
}

// requestTimeout is how long an answer is waited for: as long as .NET waits for the gateway
// (HttpTimeoutPolicyDefault.cs). A request that hangs would hold its lease, which is renewed, for ever.
const requestTimeout = 65 * time.Second

// read reads what follows a position. The ETag of the page is the position where the next one begins.
func (f *feed) read(ctx context.Context, at changefeed.Position, most int) (azcosmos.ChangeFeedResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := f.container.ReadChangeFeed(context.WithValue(ctx, readKey{}, &at),
		&azcosmos.ChangeFeedOptions{FeedRange: sliver, MaxItemCount: int32(min(most, 1<<30))})
	if err != nil {
		err = fmt.Errorf("reading range %s of %s: %w", at.Range, f.name, brief(err))
	}
	return page, err
}

// ranges returns the partition key ranges, as they are now or as they were learned last.
func (f *feed) ranges(ctx context.Context, now bool) (changefeed.Ranges, error) {
	if known := f.route.ranges.Load(); known != nil && !now {
		return *known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ranges, err := f.route.fresh(ctx, f.container)
	if err != nil {
		return nil, fmt.Errorf("reading the partition key ranges of %s: %w", f.name, brief(err))
	}
	return ranges, nil
}

// errGone says that a lease has to be replaced: its range was split or merged.
var errGone = final{errors.New("its partition key range was split or merged")}

// locate finds where the changes of a lease are. The error wraps errGone if the lease has to be
// replaced: one of a range that is no more, and an EPK lease whose keys are in several ranges. What was
// learned of the ranges is not enough if it is to be their state now.
func (f *feed) locate(ctx context.Context, l *changefeed.Record, now bool) (changefeed.Share, error) {
	for _, now := range []bool{now, true} {
		ranges, err := f.ranges(ctx, now)
		if err != nil {
			return changefeed.Share{}, err
		}
		if shares, exists := ranges.Shares(&l.Lease); exists {
			return shares[0], nil
		}
	}
	return changefeed.Share{}, fmt.Errorf("lease %s: %w", l.ID, errGone)
}

// final is an error that does not pass: neither azcore nor a host makes the request again. azcosmos does
// not see what it holds, and so follows no 410.
type final struct{ error }

func (final) NonRetriable() {}

// answerError is an answer that refuses a request, in one line. azcosmos shows all of the answer.
type answerError struct{ *azcore.ResponseError }

func (e answerError) Error() string {
	status, sub := statusOf(e.ResponseError)
	return fmt.Sprintf("the account answered with status %d/%d %s", status, sub, e.ErrorCode)
}

func (e answerError) Unwrap() error { return e.ResponseError }

// brief is the error of a request, as a user gets it.
func brief(err error) error {
	hidden, _ := errors.AsType[final](err)
	if response, ok := errors.AsType[*azcore.ResponseError](errors.Join(err, hidden.error)); ok {
		return answerError{response}
	}
	return err
}

// statusOf returns the HTTP status and substatus of an error; 0 if it has none.
func statusOf(err error) (status, sub int) {
	response, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return 0, 0
	}
	if response.RawResponse != nil {
		sub, _ = strconv.Atoi(response.RawResponse.Header.Get("x-ms-substatus")) // absent is 0
	}
	return response.StatusCode, sub
}

// transient reports whether a request may succeed if it is made again: the service says so, or it
// could not be reached.
func transient(err error) bool {
	if status, sub := statusOf(err); status != 0 {
		return changefeed.OutcomeOf(status, sub) == changefeed.Transient
	}
	_, never := errors.AsType[interface {
		error
		NonRetriable()
	}](err)
	return !never // azcore says so of what cannot be signed
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

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
