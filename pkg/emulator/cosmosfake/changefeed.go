package cosmosfake

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The modes of the change feed, as A-IM names them in any case.
const (
	incrementalFeed  = "incremental feed"
	fullFidelityFeed = "full-fidelity feed"
)

// position is where a feed starts.
type position struct {
	after uint64 // LSN: only what came later
	now   bool   // only what comes from now on
	begun bool   // the request has a continuation
	since int64  // seconds since 1970, exclusive; 0: no start time
}

// capabilityStartTimeAfterMerge is the bit of x-ms-cosmos-sdk-supportedcapabilities without which a
// start time is refused on a range that was merged (azure-sdk-for-java#48752,
// azure-sdk-for-go#26775).
const capabilityStartTimeAfterMerge = 2

// feedPosition reads If-None-Match ("LSN" or *) and If-Modified-Since. A date that is not in RFC
// 1123 form with GMT is ignored, as the service ignores it.
func (c *call) feedPosition() (position, error) {
	var p position
	switch tag := c.Header.Get("If-None-Match"); tag {
	case "":
	case "*":
		p.now = true
	default:
		lsn, err := strconv.ParseUint(unquote(tag), 10, 64)
		if err != nil {
			return p, badRequest("The continuation %s of the change feed is not a log sequence number.", tag)
		}
		p.after, p.begun = lsn, true
	}
	if at, err := time.Parse(http.TimeFormat, c.Header.Get("If-Modified-Since")); err == nil {
		p.since = at.Unix()
	}
	return p, nil
}

// errReplaced tells that a partition was split or merged between its lookup and its use.
var errReplaced = errors.New("the partition key range was replaced")

// readChangeFeed answers with the changes of one range after a position, or 304 where there are
// none.
func (c *call) readChangeFeed() (*reply, error) {
	start, err := c.feedPosition()
	if err != nil {
		return nil, err
	}
	for {
		s, err := c.scope()
		if err != nil {
			return nil, err
		}
		if len(s.ranges) != 1 {
			return nil, rangeGone("of the requested part of the key space")
		}
		if err := c.admit(s.ranges[0]); err != nil {
			return nil, err
		}
		r, err := c.readMode(s.ranges[0], s, start)
		if !errors.Is(err, errReplaced) {
			return r, err
		}
		// The next lookup finds the successors, or answers 410 where the client named the range
		// itself.
	}
}

func (c *call) readMode(p *partition, s scope, start position) (*reply, error) {
	switch strings.ToLower(c.Header.Get("A-IM")) {
	case incrementalFeed:
		return c.readIncremental(p, s, start)
	case fullFidelityFeed:
		return c.readVersions(p, s, start)
	}
	return nil, badRequest("The feed mode %q is not known.", c.Header.Get("A-IM"))
}

// searchStart answers a start time without a continuation: the service looks the LSN up and sends
// it with an empty page, and the feed begins with the read after that (azure-cosmos-dotnet-v3#755
// and #756, azure-sdk-for-java#30963). The time is exclusive (azure-cosmos-dotnet-v3,
// ChangeFeedProcessorBuilder.WithStartTime), and both are whole seconds.
func (c *call) searchStart(p *partition, start position) (*reply, error) {
	var upTo, lsn uint64
	ok := p.read(c.now, func() {
		lsn, upTo = p.lsn, p.lsn
		for d := range p.changes.from(0) {
			if d.written > start.since {
				upTo = d.lsn - 1
				return
			}
		}
	})
	if !ok {
		return nil, errReplaced
	}
	return c.feedReply(p, feedPage{body: c.openFeed(), upTo: upTo}, lsn)
}

// readIncremental answers with the latest versions of the documents that changed. Documents that
// were written in one transaction are never parted, whatever the page size.
func (c *call) readIncremental(p *partition, s scope, start position) (*reply, error) {
	if start.since > 0 && p.merged && c.capabilities()&capabilityStartTimeAfterMerge == 0 {
		return nil, badRequest("StartTime/IfModifiedSince is not currently supported with merged partitions.")
	}
	if start.since > 0 && !start.begun && !start.now {
		return c.searchStart(p, start)
	}
	// Beside a continuation a start time says nothing, unless LSNs and times went different ways in
	// a merge.
	since := int64(0)
	if p.merged {
		since = start.since
	}
	var page []*document
	var lsn uint64
	limit := c.pageSize()
	ok := p.read(c.now, func() {
		lsn = p.lsn
		if start.now {
			return
		}
		size := 0
		for d := range p.changes.from(start.after + 1) {
			if since > 0 && d.written <= since || !s.span.contains(d.epk) {
				continue
			}
			size += len(d.open)
			if n := len(page); n > 0 && (n >= limit || size > fullPage) && d.lsn != page[n-1].lsn {
				return
			}
			page = append(page, d)
		}
	})
	switch {
	case !ok:
		return nil, errReplaced
	case len(page) == 0:
		return c.feedReply(p, feedPage{upTo: lsn}, lsn)
	case c.emptyPage:
		return c.feedReply(p, feedPage{body: c.openFeed(), upTo: page[0].lsn - 1}, lsn)
	}
	wrapped := c.Header.Get(versionFormatHeader) == versionFormat
	answer := feedPage{body: c.openFeed(), upTo: page[len(page)-1].lsn}
	for _, d := range page {
		if !wrapped {
			answer.add(d.appendChange)
			continue
		}
		item, err := json.Marshal(latestItem(d))
		if err != nil {
			return nil, err
		}
		answer.addItem(item)
	}
	return c.feedReply(p, answer, lsn)
}

func (c *call) openFeed() []byte {
	return append(make([]byte, 0, 4096), `{"_rid":"`+c.container.rid+`","Documents":[`...)
}

// feedPage is an answer of the change feed under construction. Without a body it is a 304.
type feedPage struct {
	body   []byte // open after its last item
	count  int
	charge float64
	upTo   uint64 // LSN at which the next page starts
}

func (f *feedPage) add(write func([]byte) []byte) {
	if f.count > 0 {
		f.body = append(f.body, ',')
	}
	before := len(f.body)
	f.body = write(f.body)
	f.charge += readCharge(len(f.body) - before)
	f.count++
}

func (f *feedPage) addItem(item []byte) {
	f.add(func(b []byte) []byte { return append(b, item...) })
}

// feedReply closes a page. lsn is where the range stands.
func (c *call) feedReply(p *partition, page feedPage, lsn uint64) (*reply, error) {
	if err := c.checkSession(p, lsn); err != nil {
		return nil, err
	}
	r := &reply{status: http.StatusNotModified}
	if page.body != nil {
		body := strconv.AppendInt(append(page.body, `],"_count":`...), int64(page.count), 10)
		r = &reply{status: http.StatusOK, body: append(body, '}')}
	}
	r.charge = feedCall + page.charge
	r.setCount(page.count)
	c.spend(p, r.charge)
	c.progress(r, p, lsn)
	r.set("etag", `"`+strconv.FormatUint(page.upTo, 10)+`"`)
	return r, nil
}
