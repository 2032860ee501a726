package cosmosfake

import (
	"net/http"
	"strconv"
)

// readRanges answers with the partition key ranges. With A-IM it is a feed: only the entries after
// the revision in If-None-Match, in the order of their revisions, so that a range whose status
// changed comes again. Without, it is the list as it stands.
func (c *call) readRanges() *reply {
	routes := c.container.routing.Load()
	seen, err := strconv.ParseUint(unquote(c.Header.Get("If-None-Match")), 10, 64)
	known := err == nil
	entries := routes.entries
	etag := routes.revision
	if c.Header.Get("A-IM") != "" {
		entries, etag = routes.after(seen, c.pageSize())
	} else if known && seen == routes.revision {
		entries = nil
	}
	var r *reply
	if known && len(entries) == 0 {
		r = &reply{status: http.StatusNotModified, charge: 1}
	} else {
		documents := make([]any, len(entries))
		for i, e := range entries {
			documents[i] = c.container.rangeDocument(e, len(routes.entries))
		}
		r = listReply(c.container.rid, "PartitionKeyRanges", documents, 1)
	}
	r.set("etag", `"`+strconv.FormatUint(etag, 10)+`"`)
	r.setCount(len(entries))
	return r
}

func (c *container) rangeDocument(e rangeEntry, ranges int) map[string]any {
	parents := e.parents
	if parents == nil {
		parents = []string{}
	}
	serial, _ := strconv.Atoi(e.id)
	return map[string]any{
		"id": e.id, "_rid": e.rid, "_self": c.self() + "pkranges/" + e.rid + "/", "_ts": e.changed,
		"_etag":        `"` + strconv.FormatUint(e.revision, 10) + `"`,
		"minInclusive": e.span.low, "maxExclusive": e.span.high, "parents": parents, "ownedArchivalPKRangeIds": []string{},
		"ridPrefix": serial, "throughputFraction": 1 / float64(ranges), "status": e.status, "lsn": e.revision,
	}
}
