package changefeedprocessor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// ClientOptions returns options for azcosmos.NewClient, NewClientWithKey and
// NewClientFromConnectionString, with what a processor needs and azcosmos 1.5 lacks: the ids of
// partition key ranges, reads of a part of a range, the mode of the feed, and a 410 that is reported
// rather than followed. o is not changed, and may be nil. A client that is built with them serves any
// number of processors, and any other use.
func ClientOptions(o *azcosmos.ClientOptions) *azcosmos.ClientOptions {
	var with azcosmos.ClientOptions
	if o != nil {
		with = *o
	}
	with.PerRetryPolicies = append(slices.Clip(with.PerRetryPolicies), &feedPolicy{})
	return &with
}

// feedPolicy sees every request of a client, after it was signed. Signatures cover neither headers nor
// bodies, so that it may set the headers of a feed.
type feedPolicy struct {
	routes sync.Map // of *route, by the path of the container
}

// route is what a client learned of the partition key ranges of a container.
type route struct {
	one    chan struct{}                     // holds a token while somebody learns
	ranges atomic.Pointer[changefeed.Ranges] // as they were learned last, each time another pointer; nil before
}

// The values by which a context tells the policy what a request is for.
type (
	markKey  struct{} // **route, which the policy sets to that of the container that is read
	readKey  struct{} // *changefeed.Position
	learnKey struct{} // *changefeed.Ranges: have azcosmos read the ranges, unless others than these were learned
)

// Do is for azcore.
func (p *feedPolicy) Do(req *policy.Request) (*http.Response, error) {
	ctx := req.Raw().Context()
	if mark, ok := ctx.Value(markKey{}).(**route); ok {
		*mark = p.route(req.Raw().URL.Path + "/")
	}
	container, feed := path.Split(req.Raw().URL.Path)
	switch {
	case req.Raw().Method != http.MethodGet:
		if err := ownBody(req.Raw()); err != nil {
			return nil, err
		}
		return req.Next()
	case feed == "pkranges" && req.Raw().Header.Get("If-None-Match") == "":
		return p.route(container).read(req)
	case feed != "docs":
		return req.Next()
	}
	if before, ok := ctx.Value(learnKey{}).(*changefeed.Ranges); ok {
		if p.route(container).ranges.Load() != before {
			return nil, final{errors.New("the partition key ranges were read")}
		}
		return &http.Response{ // azcosmos reads them anew after a 410 alone
			StatusCode: http.StatusGone, Status: "410 Gone", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"X-Ms-Substatus": {"1002"}}, Body: http.NoBody, Request: req.Raw(),
		}, nil
	}
	at, ok := ctx.Value(readKey{}).(*changefeed.Position)
	if !ok {
		return req.Next()
	}
	h := req.Raw().Header
	h.Del("If-None-Match") // of azcosmos
	h.Set("x-ms-cosmos-sdk-supportedcapabilities", capabilities)
	at.Headers(h.Set)
	response, err := req.Next()
	if err != nil || response.StatusCode != http.StatusGone {
		return response, err
	}
	return nil, final{runtime.NewResponseError(response)}
}

// ownBody gives a try a body of its own. azcore sends the same one again with the next try, and net/http may still
// read it then: a transport may close a body after it has returned (http.RoundTripper).
func ownBody(try *http.Request) error {
	if try.Body == nil {
		return nil
	}
	text, err := io.ReadAll(try.Body)
	try.Body = io.NopCloser(bytes.NewReader(text))
	try.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return err
}

// The capabilities that a request says its client has: 1 understands merged ranges, 2 start times on
// them (azure-sdk-for-go#26775).
const capabilities = "3"

func (p *feedPolicy) route(container string) *route {
	r, _ := p.routes.LoadOrStore(container, &route{one: make(chan struct{}, 1)})
	return r.(*route)
}

// rangePages bounds how many pages of partition key ranges one read follows.
const rangePages = 1000

// read reads the ranges to their end, and gives azcosmos the present ones in one page. azcosmos 1.5
// refuses a range that comes twice, as it does while it is split (azure-sdk-for-go PR 27282).
func (r *route) read(req *policy.Request) (*http.Response, error) {
	var page struct {
		Ranges []changefeed.PartitionKeyRange `json:"PartitionKeyRanges"`
	}
	var revisions []changefeed.PartitionKeyRange
	var last *http.Response
	ctx, cancel := context.WithTimeout(req.Raw().Context(), requestTimeout) // azcosmos waits without a limit
	defer cancel()
	for range rangePages {
		next := req.Clone(ctx)
		if last != nil {
			next.Raw().Header.Set("If-None-Match", last.Header.Get("ETag"))
		}
		response, err := next.Next()
		if err != nil || response.StatusCode != http.StatusOK && (last == nil || response.StatusCode != http.StatusNotModified) {
			return response, err
		}
		text, err := runtime.Payload(response)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusNotModified {
			ranges := changefeed.NewRanges(revisions)
			r.ranges.Store(&ranges)
			page.Ranges = ranges
			text, err = json.Marshal(page)
			last.Header.Del("Content-Length")
			last.ContentLength, last.Body = int64(len(text)), io.NopCloser(bytes.NewReader(text))
			return last, err
		}
		page.Ranges = nil
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, final{fmt.Errorf("reading the partition key ranges: %w", err)}
		}
		revisions, last = append(revisions, page.Ranges...), response
	}
	return nil, final{errors.New("the partition key ranges have no end")}
}

// sliver is a feed range that is in one partition key range whatever is split: azcosmos then makes one
// request, whose headers the policy replaces.
var sliver = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "00000000000000000000000000000001"}

// learnTries is how often the ranges are asked for if another client of the process was quicker:
// azcosmos shares its cache of them between clients, and only one of them makes the request.
const (
	learnTries = 5
	learnPause = 100 * time.Millisecond
)

// fresh reads the partition key ranges of a container by a request that begins now.
func (r *route) fresh(ctx context.Context, container *azcosmos.ContainerClient) (changefeed.Ranges, error) {
	before := r.ranges.Load()
	select {
	case r.one <- struct{}{}:
		defer func() { <-r.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for try := 1; r.ranges.Load() == before; try++ {
		_, err := container.ReadChangeFeed(context.WithValue(ctx, learnKey{}, before), &azcosmos.ChangeFeedOptions{FeedRange: sliver})
		switch {
		case r.ranges.Load() != before:
		case try == learnTries || ctx.Err() != nil:
			return nil, fmt.Errorf("the partition key ranges cannot be read: %w", err)
		default:
			pause(ctx, learnPause)
		}
	}
	return *r.ranges.Load(), nil
}
