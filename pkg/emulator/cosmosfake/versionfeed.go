package cosmosfake

import (
	"encoding/json"
)

// versionFormat is the wire format whose items are wrapped: the document, and beside it what the
// service knows about the change. The feed of all versions and deletes has no other; the
// incremental feed has it for those who ask.
const (
	versionFormatHeader = "x-ms-cosmos-changefeed-wire-format-version"
	versionFormat       = "2021-09-15"
)

type versionItem struct {
	Current  json.RawMessage `json:"current"`
	Previous json.RawMessage `json:"previous,omitempty"`
	Metadata versionMetadata `json:"metadata"`
}

type versionMetadata struct {
	LSN              uint64         `json:"lsn"`
	Written          int64          `json:"crts"` // seconds since 1970
	Operation        string         `json:"operationType"`
	PreviousImageLSN uint64         `json:"previousImageLSN"`
	Expired          bool           `json:"timeToLiveExpired,omitempty"`
	ID               string         `json:"id,omitempty"`
	PartitionKey     map[string]any `json:"partitionKey,omitempty"`
}

// readVersions answers with every write of a range, deletes included, from a continuation or from
// now on: this feed has no beginning.
func (c *call) readVersions(p *partition, s scope, start position) (*reply, error) {
	retention := c.container.versionRetention()
	switch {
	case retention == 0:
		return nil, badRequest("The feed of all versions and deletes needs an account with continuous backup.")
	case c.Header.Get(versionFormatHeader) != versionFormat:
		return nil, badRequest("The feed of all versions and deletes needs the wire format version %s.", versionFormat)
	case c.Header.Get("If-None-Match") == "":
		return nil, badRequest("The feed of all versions and deletes starts from now or from a continuation.")
	}
	var page []version
	var lsn uint64
	kept := true
	limit := c.pageSize()
	ok := p.read(c.now, func() {
		lsn = p.lsn
		if start.now {
			return
		}
		size := 0
		var log []version
		log, kept = p.versions.after(start.after, c.now, retention)
		for _, v := range log {
			if !s.span.contains(v.epk) {
				continue
			}
			size += v.size()
			if n := len(page); n > 0 && (n >= limit || size > fullPage) && v.lsn != page[n-1].lsn {
				return
			}
			page = append(page, v)
		}
	})
	switch {
	case !ok:
		return nil, errReplaced
	case !kept: // what the service answers here is not documented: 400 is an assumption
		return nil, badRequest("The continuation is older than the retention of the feed of all versions and deletes.")
	case len(page) == 0:
		return c.feedReply(p, feedPage{upTo: lsn}, lsn)
	case c.emptyPage:
		return c.feedReply(p, feedPage{body: c.openFeed(), upTo: page[0].lsn - 1}, lsn)
	}
	answer := feedPage{body: c.openFeed(), upTo: page[len(page)-1].lsn}
	for _, v := range page {
		item, err := json.Marshal(c.container.versionItem(v))
		if err != nil {
			return nil, err
		}
		answer.addItem(item)
	}
	return c.feedReply(p, answer, lsn)
}

// latestItem is a change of the incremental feed in the wrapped format.
func latestItem(d *document) versionItem {
	operation := "replace"
	if d.first {
		operation = "create"
	}
	return versionItem{Current: d.json(), Metadata: versionMetadata{LSN: d.lsn, Written: d.written, Operation: operation}}
}

func (c *container) versionItem(v version) versionItem {
	item := versionItem{Current: json.RawMessage("{}"), Metadata: versionMetadata{LSN: v.lsn, Written: v.at.Unix(), Operation: v.operation, Expired: v.expired}}
	if v.previous != nil {
		item.Metadata.PreviousImageLSN = v.previous.lsn
	}
	if v.current != nil {
		item.Current = v.current.json()
		return item
	}
	item.Previous = v.previous.json()
	item.Metadata.ID = v.name.id
	item.Metadata.PartitionKey = map[string]any{}
	var components []any
	if json.Unmarshal([]byte(v.name.key), &components) == nil {
		for i, component := range components {
			if _, undefined := component.(map[string]any); !undefined {
				item.Metadata.PartitionKey[c.key.steps[i][len(c.key.steps[i])-1]] = component
			}
		}
	}
	return item
}
