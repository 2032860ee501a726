package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
)

// Inspection is what `inspect --output json` prints (docs/operate.md).
type Inspection struct {
	Processor string            `json:"processor"`
	Lease     string            `json:"lease"` // lease token
	Range     *changefeed.Range `json:"range"` // of an EPK lease; else null
	Owner     *string           `json:"owner"`
	Position  *string           `json:"position"`  // the lease's continuation; null where it has none
	Splitting bool              `json:"splitting"` // documents are those of the ranges that replaced the lease's
	Note      *string           `json:"note"`      // why no document is pending, or none can be told
	Documents []PendingDocument `json:"documents"` // oldest first within a range
}

// PendingDocument is a document that is not processed yet.
type PendingDocument struct {
	RangeID   string            `json:"rangeId"`          // partition key range
	ID        *string           `json:"id"`               // null where the service tells none
	Key       []json.RawMessage `json:"partitionKey"`     // one value for each path; {} where the document has none
	Bytes     *int              `json:"bytes"`            // of the document as it was sent; null for a delete without its earlier version
	LSN       *int64            `json:"lsn"`              // of its transaction
	Written   *time.Time        `json:"written"`          // in seconds
	Age       *int64            `json:"changeAgeSeconds"` // when it was read
	Operation *string           `json:"operation"`        // in all-versions mode: create, replace or delete
	Document  json.RawMessage   `json:"document"`         // null without --document
}

// ErrPartition is of a partition that a processor does not have, or not only one of.
var ErrPartition = errors.New("feedscale poll --dry-run --partitions lists the partitions")

// Inspect reads the leases of a processor as a poll does, and what follows the position of one of them.
func Inspect(ctx context.Context, p poller.Processor, partition string, count int, contents bool, now time.Time) (*Inspection, error) {
	described, _, err := p.Account.Describe(ctx, p.Container)
	if err != nil {
		return nil, err
	}
	leases, err := leasesOf(ctx, p, described.RID, now)
	if err != nil {
		return nil, err
	}
	token, err := tokenOf(leases, p.Name, partition)
	if err != nil {
		return nil, err
	}
	ranges, _, err := p.Account.Ranges(ctx, p.Container)
	if err != nil {
		return nil, err
	}
	planned := changefeed.Plan(leases, ranges)
	l := planned[slices.IndexFunc(planned, func(l *changefeed.LeasePlan) bool { return l.Token == token })]
	if l.Err != nil {
		return nil, fmt.Errorf("lease %s: %w", l.ID, l.Err)
	}
	found := &Inspection{
		Processor: p.Name, Lease: l.Token, Range: l.Range, Owner: report.Given(l.Owner), Position: report.Given(l.Continuation), Splitting: l.Splitting, Documents: []PendingDocument{},
	}
	switch {
	case l.Leftover:
		found.Note = new("other leases replaced this one: inspect those")
	case l.Uncheckpointed(p.StartFrom):
		found.Note = new("the lease has no checkpoint and its processor starts from now, so that only the memory of its owner knows the position")
	default:
		for _, share := range l.Shares {
			pending, err := read(ctx, p, l, share, described.PartitionKey.Paths, count, contents)
			if err != nil {
				return nil, err
			}
			found.Documents = append(found.Documents, pending...)
		}
		if len(found.Documents) == 0 {
			found.Note = new("nothing is pending")
		}
	}
	return found, nil
}

// leasesOf reads the leases of a processor of the container with a resource id.
func leasesOf(ctx context.Context, p poller.Processor, rid string, now time.Time) ([]changefeed.LeaseDocument, error) {
	prefixes, err := p.Identity(rid).Prefixes()
	if err != nil {
		return nil, err
	}
	documents, _, err := p.LeaseAccount.Leases(ctx, p.LeaseContainer, prefixes)
	if err != nil && !errors.Is(err, cosmos.ErrMissing) {
		return nil, err
	}
	return changefeed.Sorted(documents, now).Select(prefixes, p.LeaseFormat)
}

// read returns the first documents of a share of the lease.
func read(ctx context.Context, p poller.Processor, l *changefeed.LeasePlan, share changefeed.Share, paths []string, count int, contents bool) (pending []PendingDocument, err error) {
	reading, err := changefeed.ReadOn(l.Position(share, p.StartFrom), func(position changefeed.Position) (changefeed.Answer, error) {
		answer, documents, err := p.Account.Documents(ctx, p.Container, position, count)
		for _, item := range documents {
			pending = append(pending, newPending(item, l.Mode, share.Of.ID, paths, answer.Date, contents))
		}
		return answer, err
	})
	if err == nil && reading.More {
		err = fmt.Errorf("range %s answers with empty pages, which do not say what is pending: ask again in a minute", share.Of.ID)
	}
	return pending, err
}

// newPending reads an item of the feed: a document or, in all-versions mode, an envelope. What cannot be
// read stays unknown, since the document may be the odd one that the processor is stuck on.
func newPending(item json.RawMessage, mode changefeed.Mode, rangeID string, paths []string, answered time.Time, contents bool) PendingDocument {
	d, document, about, lsn, written := PendingDocument{RangeID: rangeID}, item, item, "_lsn", "_ts"
	if mode == changefeed.FullFidelity {
		about, lsn, written = field(item, "metadata"), "lsn", "crts"
		d.Operation = fieldOf[string](about, "operationType")
		if document = field(item, "current"); d.Operation != nil && *d.Operation == "delete" {
			document = field(item, "previous") // the current one is an empty object
		}
	}
	d.ID, d.LSN = cmp.Or(fieldOf[string](document, "id"), fieldOf[string](about, "id")), fieldOf[int64](about, lsn)
	if seconds := fieldOf[int64](about, written); seconds != nil {
		d.Written = new(time.Unix(*seconds, 0).UTC())
		if !answered.IsZero() {
			d.Age = new(max(0, int64(answered.Sub(*d.Written)/time.Second)))
		}
	}
	if document != nil {
		d.Bytes = new(len(document))
	}
	if contents {
		d.Document = document
	}
	for _, path := range paths {
		names := strings.Split(strings.TrimPrefix(path, "/"), "/")
		key := field(document, names...)
		if key == nil {
			key = field(about, "partitionKey", names[len(names)-1]) // of a delete
		}
		if key == nil {
			key = json.RawMessage("{}") // as the service writes a key that is not defined
		}
		d.Key = append(d.Key, key)
	}
	return d
}

// field is a value in JSON objects within each other; nil if there is none. Upper case matters.
func field(of json.RawMessage, names ...string) json.RawMessage {
	for _, name := range names {
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(of, &fields) // what is no object has no fields
		of = fields[strings.Trim(name, `"`)]
	}
	return of
}

// fieldOf is a field of some type; nil if there is none or it is of another type.
func fieldOf[T any](of json.RawMessage, names ...string) *T {
	var v *T
	if raw := field(of, names...); raw == nil || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// tokenOf finds the lease token that is a text, or else the only one that begins with it.
func tokenOf(leases []changefeed.LeaseDocument, name, partition string) (string, error) {
	var all, fit []string
	for _, l := range leases {
		if l.Token == partition {
			return l.Token, nil
		}
		all = append(all, l.Token)
		if strings.HasPrefix(l.Token, strings.TrimSuffix(partition, "…")) { // as a narrow terminal has it
			fit = append(fit, l.Token)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(all) == 0:
		return "", fmt.Errorf("processor %s has no lease; feedscale poll --dry-run --explain %s says why; %w", name, name, ErrPartition)
	}
	return "", fmt.Errorf("processor %s has %d partitions that begin with %q; it has %s; %w", name, len(fit), partition, strings.Join(all, ", "), ErrPartition)
}
