package cosmosfake

import (
	"net/http"
	"strconv"
	"strings"
)

// namedRange returns the partition key range that the request names; nil if it names none. A range
// that is gone and one that never existed get the same answer: the stand-in keeps no list of old
// ranges. This is an assumption.
func (c *call) namedRange() (*partition, error) {
	if c.RangeID == "" {
		return nil, nil
	}
	p, ok := c.container.routing.Load().byID(c.RangeID)
	switch {
	case !ok:
		return nil, rangeGone(c.RangeID)
	case p.splitting.Load():
		return nil, &fault{status: http.StatusGone, substatus: substatusCompletingSplit, message: "The partition key range is completing a split."}
	}
	return p, nil
}

// scope is what part of the container a feed or a query is about.
type scope struct {
	span   span
	ranges []*partition // the ranges of that part, in order
}

// scope reads the headers that narrow a request: a range by its id, a part of the key space, a
// partition key or the beginning of one.
func (c *call) scope() (scope, error) {
	s := scope{span: everything()}
	if c.Header.Get("x-ms-read-key-type") != "" || c.Header.Get("x-ms-end-epk") != "" {
		s.span = span{strings.ToUpper(c.Header.Get("x-ms-start-epk")), strings.ToUpper(c.Header.Get("x-ms-end-epk"))}
		if s.span.high == "" {
			s.span.high = everything().high
		}
	}
	if header := c.Header.Get("x-ms-documentdb-partitionkey"); header != "" {
		key, err := c.container.key.parse(header)
		if err != nil {
			return scope{}, err
		}
		s.span = c.container.key.span(key)
	}
	named, err := c.namedRange()
	switch {
	case err != nil:
		return scope{}, err
	case named != nil:
		s.ranges = []*partition{named}
	default:
		s.ranges = c.container.routing.Load().overlapping(s.span)
	}
	return s, nil
}

const (
	defaultPage = 100
	largestPage = 1000    // what -1 stands for
	fullPage    = 4 << 20 // bytes after which a page ends
)

// pageSize reads x-ms-max-item-count.
func (c *call) pageSize() int {
	n, err := strconv.Atoi(c.Header.Get("x-ms-max-item-count"))
	switch {
	case err != nil || n == 0:
		return defaultPage
	case n < 0 || n > largestPage:
		return largestPage
	}
	return n
}

// unquote takes the quotes, and the mark of a weak tag, off an entity tag.
func unquote(etag string) string { return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`) }
