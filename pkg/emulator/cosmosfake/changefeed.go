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
	since int64  // seconds since 1970: only what was written then or later
}

// feedPosition reads If-None-Match ("LSN" or *) and If-Modified-Since. A date that is not in RFC 1123 form with GMT is
// ignored, as the service ignores it.
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
		p.after = lsn
	}
	if at, err := time.Parse(http.TimeFormat, c.Header.Get("If-Modified-Since")); err == nil {
		p.since = at.Unix()
	}
	return p, nil
}

// errReplaced tells that a partition was split or merged between its lookup and its use.
var errReplaced = errors.New("the partition key range was replaced")

// readChangeFeed answers with the changes of one range after a position, or 304 where there are none.
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
		// The next lookup finds the successors, or answers 410 where the client named the range itself.
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

// readIncremental answers with the latest versions of the documents that changed. Documents that were written in one
// transaction are never parted, whatever the page size.
func (c *call) readIncremental(p *partition, s scope, start position) (*reply, error) {
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
			if d.written < start.since || !s.span.contains(d.epk) {
				continue
			}
			if n := len(page); n > 0 && (n >= limit || size >= fullPage) && d.lsn != page[n-1].lsn {
				return
			}
			page = append(page, d)
			size += len(d.open)
		}
	})
	if !ok {
		return nil, errReplaced
	}
	if len(page) == 0 {
		return c.feedReply(p, nil, 0, lsn, lsn)
	}
	wrapped := c.Header.Get(versionFormatHeader) == versionFormat
	body := c.openFeed()
	for i, d := range page {
		if i > 0 {
			body = append(body, ',')
		}
		if !wrapped {
			body = d.appendChange(body)
			continue
		}
		item, err := json.Marshal(latestItem(d))
		if err != nil {
			return nil, err
		}
		body = append(body, item...)
	}
	return c.feedReply(p, body, len(page), page[len(page)-1].lsn, lsn)
}

func (c *call) openFeed() []byte {
	return append(make([]byte, 0, 4096), `{"_rid":"`+c.container.rid+`","Documents":[`...)
}

// feedReply closes the body, which is open after its last document. upTo is where the next page starts, lsn where the
// range stands.
func (c *call) feedReply(p *partition, body []byte, count int, upTo, lsn uint64) (*reply, error) {
	if err := c.checkSession(p, lsn); err != nil {
		return nil, err
	}
	r := &reply{status: http.StatusNotModified, charge: 1}
	if count > 0 {
		body = strconv.AppendInt(append(body, `],"_count":`...), int64(count), 10)
		r = &reply{status: http.StatusOK, body: append(body, '}'), charge: feedCharge(len(body))}
	}
	r.setCount(count)
	p.budget.spend(r.charge)
	c.progress(r, p, lsn)
	r.set("etag", `"`+strconv.FormatUint(upTo, 10)+`"`)
	return r, nil
}
