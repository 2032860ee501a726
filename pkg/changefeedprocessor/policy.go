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
	"strconv"
	"sync"
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
	with.PerRetryPolicies = append(slices.Clip(with.PerRetryPolicies), &feedPolicy{routes: map[string]*route{}})
	return &with
}

// feedPolicy sees every request of a client, after it was signed. Signatures cover neither headers nor
// bodies, so that it may set the headers of a feed.
type feedPolicy struct {
	mu     sync.Mutex
	routes map[string]*route // by the path of the container
}

// route is what a client learned of the partition key ranges of a container.
type route struct {
	one chan struct{} // holds a token while somebody learns

	mu     sync.Mutex
	reads  int // how often the ranges were learned
	ranges changefeed.Ranges
}

// The values by which a context tells the policy what a request is for.
type (
	markKey  struct{} // **feedPolicy, which the policy sets to itself
	readKey  struct{} // *feedRequest
	learnKey struct{} // *lesson
)

// feedRequest is a read of the change feed.
type feedRequest struct {
	place       place
	mode        changefeed.Mode
	ifNoneMatch string    // "" leaves the header out, which is the beginning
	since       time.Time // zero: no start time
}

// lesson is a read of the partition key ranges.
type lesson struct {
	route  *route
	before int // reads that are not new enough
}

// errLearned ends a request whose purpose was to have azcosmos read the ranges.
var errLearned = errors.New("the partition key ranges were read")

// final is an error that no policy of azcore tries again.
type final struct{ error }

func (final) NonRetriable()   {}
func (f final) Unwrap() error { return f.error }

// answerError is an answer of the change feed that azcosmos must not see, since it would follow it.
type answerError struct{ status, substatus int }

func (e answerError) Error() string {
	return fmt.Sprintf("the change feed answered with status %d/%d", e.status, e.substatus)
}

// Do is for azcore.
func (p *feedPolicy) Do(req *policy.Request) (*http.Response, error) {
	ctx := req.Raw().Context()
	if mark, ok := ctx.Value(markKey{}).(**feedPolicy); ok {
		*mark = p
	}
	container, feed := path.Split(req.Raw().URL.Path)
	switch {
	case req.Raw().Method != http.MethodGet:
		return req.Next()
	case feed == "pkranges" && req.Raw().Header.Get("If-None-Match") == "":
		return p.route(container).read(req)
	case feed != "docs":
		return req.Next()
	}
	if l, ok := ctx.Value(learnKey{}).(*lesson); ok {
		return l.answer(req)
	}
	read, ok := ctx.Value(readKey{}).(*feedRequest)
	if !ok {
		return req.Next()
	}
	read.set(req.Raw().Header)
	response, err := req.Next()
	if err != nil || response.StatusCode != http.StatusGone {
		return response, err
	}
	runtime.Drain(response)
	return nil, final{answerError{response.StatusCode, substatus(response)}}
}

func substatus(r *http.Response) int {
	if r == nil {
		return 0
	}
	n, _ := strconv.Atoi(r.Header.Get("x-ms-substatus")) // absent is 0
	return n
}

// The capabilities that a request says its client has: 1 understands merged ranges, 2 start times on
// them (azure-sdk-for-go#26775).
const capabilities = "3"

// set writes the headers of the read in place of those that azcosmos made.
func (r *feedRequest) set(h http.Header) {
	h.Set("x-ms-documentdb-partitionkeyrangeid", r.place.rangeID)
	h.Set("x-ms-cosmos-sdk-supportedcapabilities", capabilities)
	h.Del("If-None-Match")
	h.Del("If-Modified-Since")
	if r.ifNoneMatch != "" {
		h.Set("If-None-Match", r.ifNoneMatch)
	}
	if !r.since.IsZero() {
		h.Set("If-Modified-Since", r.since.UTC().Format(http.TimeFormat))
	}
	if part := r.place.part; part != (changefeed.Range{}) {
		h.Set("x-ms-read-key-type", "EffectivePartitionKeyRange")
		h.Set("x-ms-start-epk", part.Min)
		h.Set("x-ms-end-epk", part.Max)
	}
	if r.mode == changefeed.FullFidelity { // ChangeFeedModeFullFidelity.cs
		h.Set("A-IM", "Full-Fidelity Feed")
		h.Set("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
	}
}

func (p *feedPolicy) route(container string) *route {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[container]
	if r == nil {
		r = &route{one: make(chan struct{}, 1)}
		p.routes[container] = r
	}
	return r
}

// rangePages bounds how many pages of partition key ranges one read follows.
const rangePages = 1000

// read reads the ranges to their end, and gives azcosmos the present ones in one page. azcosmos 1.5
// refuses a range that comes twice, as it does while it is split (azure-sdk-for-go PR 27282).
func (r *route) read(req *policy.Request) (*http.Response, error) {
	var revisions []changefeed.PartitionKeyRange
	var whole *http.Response
	var body map[string]json.RawMessage
	ctx, cancel := context.WithTimeout(req.Raw().Context(), requestTimeout) // azcosmos waits without a limit
	defer cancel()
	for range rangePages {
		next := req.Clone(ctx)
		if whole != nil {
			next.Raw().Header.Set("If-None-Match", whole.Header.Get("ETag"))
		}
		response, err := next.Next()
		if err != nil || response.StatusCode != http.StatusOK && (whole == nil || response.StatusCode != http.StatusNotModified) {
			return response, err
		}
		if response.StatusCode == http.StatusNotModified {
			runtime.Drain(response)
			return r.learned(revisions, whole, body)
		}
		text, err := runtime.Payload(response)
		if err != nil {
			return nil, err
		}
		var page struct {
			Ranges []changefeed.PartitionKeyRange `json:"PartitionKeyRanges"`
		}
		if err := errors.Join(json.Unmarshal(text, &page), json.Unmarshal(text, &body)); err != nil {
			return nil, final{fmt.Errorf("reading the partition key ranges: %w", err)}
		}
		revisions, whole = append(revisions, page.Ranges...), response
	}
	return nil, final{errors.New("the partition key ranges have no end")}
}

// learned keeps the ranges, and makes one page of them.
func (r *route) learned(revisions []changefeed.PartitionKeyRange, whole *http.Response, body map[string]json.RawMessage) (*http.Response, error) {
	ranges := changefeed.NewRanges(revisions)
	r.mu.Lock()
	r.reads, r.ranges = r.reads+1, ranges
	r.mu.Unlock()
	var err error
	if body["PartitionKeyRanges"], err = json.Marshal(ranges); err != nil {
		return nil, err
	}
	body["_count"] = json.RawMessage(strconv.Itoa(len(ranges)))
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	whole.Header.Del("Content-Length")
	whole.ContentLength, whole.Body = int64(len(text)), io.NopCloser(bytes.NewReader(text))
	return whole, nil
}

// known returns what was learned; ok is false until that was done more often than before.
func (r *route) known(before int) (ranges changefeed.Ranges, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ranges, r.reads > before
}

// answer has azcosmos read the ranges anew: it does so after a 410 alone. No request is sent.
func (l *lesson) answer(req *policy.Request) (*http.Response, error) {
	if _, ok := l.route.known(l.before); ok {
		return nil, final{errLearned}
	}
	return &http.Response{
		StatusCode: http.StatusGone, Status: "410 Gone", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"X-Ms-Substatus": {"1002"}}, Body: http.NoBody, Request: req.Raw(),
	}, nil
}

// sliver is a feed range that is in one partition key range whatever is split: azcosmos then makes one
// request, whose headers the policy replaces.
func sliver() *azcosmos.FeedRange {
	return &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "00000000000000000000000000000001"}
}

// learnTries is how often the ranges are asked for if another client of the process was quicker:
// azcosmos shares its cache of them between clients, and only one of them makes the request.
const (
	learnTries = 5
	learnPause = 100 * time.Millisecond
)

// fresh reads the partition key ranges of a container by a request that begins now.
func (p *feedPolicy) fresh(ctx context.Context, container *azcosmos.ContainerClient, of string) (changefeed.Ranges, error) {
	r := p.route(of)
	r.mu.Lock()
	l := &lesson{route: r, before: r.reads}
	r.mu.Unlock()
	select {
	case r.one <- struct{}{}:
		defer func() { <-r.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for try := 1; ; try++ {
		if ranges, ok := r.known(l.before); ok {
			return ranges, nil
		}
		_, err := container.ReadChangeFeed(context.WithValue(ctx, learnKey{}, l), &azcosmos.ChangeFeedOptions{FeedRange: sliver()})
		if ranges, ok := r.known(l.before); ok {
			return ranges, nil
		}
		if try == learnTries || ctx.Err() != nil {
			return nil, fmt.Errorf("the partition key ranges cannot be read: %w", err)
		}
		pause(ctx, learnPause)
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
