package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// Container names a container.
type Container struct{ Database, ID string }

func (c Container) String() string { return c.Database + "/" + c.ID }

// link is both the path of the container and what a signature covers; the ids of the demo need no
// escaping.
func (c Container) link() string { return "dbs/" + c.Database + "/colls/" + c.ID }

// keyRange is a partition key range.
type keyRange struct {
	ID  string `json:"id"`
	Min string `json:"minInclusive"`
	Max string `json:"maxExclusive"`
}

func (r keyRange) span() leasefake.Range { return leasefake.Range{Min: r.Min, Max: r.Max} }

// overlap reports whether two spans have keys in common. Bounds compare as strings, since all have
// the same length but the first and the last, "" and "FF".
func overlap(a, b leasefake.Range) bool { return a.Min < b.Max && b.Min < a.Max }

// clip is what two spans that overlap have in common.
func clip(a, b leasefake.Range) leasefake.Range {
	return leasefake.Range{Min: max(a.Min, b.Min), Max: min(a.Max, b.Max)}
}

// ranges reads the partition key ranges of a container.
func (a *Account) ranges(ctx context.Context, c Container) ([]keyRange, error) {
	answer, err := a.get(ctx, c, "pkranges", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Ranges []keyRange `json:"PartitionKeyRanges"`
	}
	if err := answer.decode(&list); err != nil {
		return nil, fmt.Errorf("reading the partition key ranges of %s: %w", c, err)
	}
	return list.Ranges, nil
}

// page is a page of the change feed of one partition key range.
type page struct {
	documents    []json.RawMessage
	continuation string // ETag: where the next page starts
}

// errGone says that a partition key range was split or merged, or is about to be.
var errGone = errors.New("the partition key range is gone")

// The substatus codes that the SDK takes for a split when they come with a 410
// (ExceptionClassifier.cs).
const (
	substatusRangeGone       = "1002"
	substatusCompletingSplit = "1007"
)

// place is where the changes of a lease are: a partition key range, or a part of one.
type place struct {
	rangeID string
	part    *leasefake.Range // nil: all of the range
}

// page reads what follows a position, as If-None-Match has it; "" is the beginning. The page is
// empty where nothing does. The error wraps errGone where the range is no more.
func (a *Account) page(ctx context.Context, c Container, at place, ifNoneMatch string, most int) (page, error) {
	header := map[string]string{
		"A-IM":                                "Incremental Feed",
		"x-ms-max-item-count":                 strconv.Itoa(most),
		"x-ms-documentdb-partitionkeyrangeid": at.rangeID,
	}
	if at.part != nil {
		header["x-ms-read-key-type"] = "EffectivePartitionKeyRange"
		header["x-ms-start-epk"], header["x-ms-end-epk"] = at.part.Min, at.part.Max
	}
	if ifNoneMatch != "" {
		header["If-None-Match"] = ifNoneMatch
	}
	answer, err := a.get(ctx, c, "docs", header)
	if err != nil {
		return page{}, err
	}
	next := page{continuation: answer.header.Get("ETag")}
	switch substatus := answer.header.Get("x-ms-substatus"); {
	case answer.status == http.StatusNotModified:
		return next, nil
	case answer.status == http.StatusGone && (substatus == substatusRangeGone || substatus == substatusCompletingSplit):
		return page{}, fmt.Errorf("reading range %s of %s: %w", at.rangeID, c, errGone)
	}
	var feed struct{ Documents []json.RawMessage }
	if err := answer.decode(&feed); err != nil {
		return page{}, fmt.Errorf("reading the change feed of range %s of %s: %w", at.rangeID, c, err)
	}
	next.documents = feed.Documents
	return next, nil
}
