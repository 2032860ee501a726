package changefeedprocessor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// Batch is changes of one lease, in the order in which they were written.
type Batch struct {
	Lease string            // lease token: a partition key range id, or min-max for an EPK lease
	Items []json.RawMessage // documents; envelopes in mode AllVersionsAndDeletes
	Mode  Mode

	partition    *partition
	number       int64
	continuation string
}

// Change is one change of a batch.
type Change struct {
	ID        string          // of the document; "" if it has none
	Current   json.RawMessage // the document after the change; nil for a delete
	Previous  json.RawMessage // the document before it; nil if the service does not keep it
	Operation string          // "create", "replace" or "delete"; "" in mode LatestVersion
	Expired   bool            // deleted by its time to live
	LSN       int64           // of the transaction; those of a split or merged range go on
	Time      time.Time       // when it was written, in seconds
}

// Checkpoint notes in the lease that the batch and all before it are handled. It is for Options.Manual;
// otherwise a batch is checkpointed when its handler returns nil. It may be called after the handler
// returned, from any goroutine, until the lease is released; then, and after the lease was lost, the
// error is [ErrLeaseLost] or that of a context, and the batch comes again.
func (b Batch) Checkpoint(ctx context.Context) error {
	if b.partition == nil {
		return errors.New("changefeedprocessor: this batch is not one that a processor made")
	}
	return b.partition.checkpoint(ctx, b.number, b.continuation)
}

// Changes decodes what the service says of each change.
func (b Batch) Changes() ([]Change, error) {
	changes := make([]Change, len(b.Items))
	for i, item := range b.Items {
		c, err := decode(item, b.Mode)
		if err != nil {
			return nil, &ItemError{Index: i, ID: c.ID, Err: err}
		}
		changes[i] = c
	}
	return changes, nil
}

// decode returns what an item says. The ID is there even if something else of the item cannot be read.
func decode(item json.RawMessage, mode Mode) (Change, error) {
	var document struct {
		ID      string `json:"id"`
		LSN     int64  `json:"_lsn"`
		Written int64  `json:"_ts"`
	}
	if mode == LatestVersion {
		err := json.Unmarshal(item, &document)
		return Change{ID: document.ID, Current: item, LSN: document.LSN, Time: time.Unix(document.Written, 0).UTC()}, err
	}
	var e struct { // an item of the feed of all versions and deletes
		Current  json.RawMessage `json:"current"`
		Previous json.RawMessage `json:"previous"`
		Metadata struct {
			ID        string `json:"id"`
			LSN       int64  `json:"lsn"`
			Written   int64  `json:"crts"`
			Operation string `json:"operationType"`
			Expired   bool   `json:"timeToLiveExpired"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(item, &e)
	for _, image := range []json.RawMessage{e.Previous, e.Current} {
		_ = json.Unmarshal(image, &document) // one of them may be missing
	}
	c := Change{
		ID: cmp.Or(document.ID, e.Metadata.ID), Current: e.Current, Previous: e.Previous, Operation: e.Metadata.Operation, Expired: e.Metadata.Expired,
		LSN: e.Metadata.LSN, Time: time.Unix(e.Metadata.Written, 0).UTC(),
	}
	if c.Operation == "delete" {
		c.Current = nil // the service sends an empty object
	}
	return c, err
}

// ItemError says which item of a batch does not decode.
type ItemError struct {
	Index int    // in [Batch.Items]
	ID    string // of the document; "" if the item has none
	Err   error
}

func (e *ItemError) Error() string {
	return fmt.Sprintf("item %d, document %q: %v", e.Index, e.ID, e.Err)
}

// Unwrap returns the error of the item.
func (e *ItemError) Unwrap() error { return e.Err }

// Of returns a handler that decodes the document of each item before it calls handle: the current one,
// and for a delete the previous one. If an item does not decode, handle is not called and the error is an
// [*ItemError] that names it.
func Of[T any](handle func(ctx context.Context, b Batch, documents []T) error) Handler {
	return func(ctx context.Context, b Batch) error {
		changes, err := b.Changes()
		if err != nil {
			return err
		}
		documents := make([]T, len(changes))
		for i, c := range changes {
			document := c.Current
			if document == nil {
				document = c.Previous // nil if the service keeps nothing of a delete
			}
			if document == nil {
				continue
			}
			if err := json.Unmarshal(document, &documents[i]); err != nil {
				return &ItemError{Index: i, ID: c.ID, Err: err}
			}
		}
		return handle(ctx, b, documents)
	}
}

// process has a page handled, and checkpoints it. Nothing is checkpointed within a page: the items of
// one transaction share an LSN.
func (p *partition) process(items [][]byte) error {
	p.delivered++
	b := Batch{Lease: p.token, Mode: p.Mode, partition: p, number: p.delivered, continuation: p.position}
	for _, item := range items {
		b.Items = append(b.Items, item)
	}
	began := time.Now()
	if err := p.deliver(b, true); err != nil {
		return fmt.Errorf("handling changes of lease %s: %w", p.token, err)
	}
	took := time.Since(began)
	if p.Manual {
		return nil
	}
	if err := p.checkpoint(p.owning, b.number, b.continuation); err != nil {
		return err
	}
	p.Observe(Observation{Lease: p.token, Items: len(b.Items), Took: took, Checkpointed: true})
	return nil
}

// deliver calls the handler until it has handled a batch or the item is found and decided about that it
// cannot handle. Half of a batch is tried once; the whole page, and an item alone, as often as
// Options.Retries says, so that what fails for a while only is not taken for poison.
func (p *partition) deliver(b Batch, whole bool) error {
	err := p.try(b, whole || len(b.Items) == 1)
	if err == nil || p.Poison == nil || p.holding.Err() != nil {
		return err
	}
	if len(b.Items) > 1 {
		part, cut := b, len(b.Items)/2
		part.Items, part.number = b.Items[:cut], 0 // the last part alone can checkpoint the page
		if err := p.deliver(part, false); err != nil {
			return err
		}
		b.Items = b.Items[cut:]
		return p.deliver(b, false)
	}
	c, _ := decode(b.Items[0], b.Mode)
	p.Log.Warn("a change cannot be handled", "lease", p.token, "document", c.ID, "error", err.Error())
	p.Failed(p.token, fmt.Errorf("document %q of lease %s: %w", c.ID, p.token, err))
	why := p.Poison(p.holding, Poisoned{Lease: p.token, Item: b.Items[0], ID: c.ID, Err: err})
	if errors.Is(why, ErrStop) {
		p.stop(fmt.Errorf("document %q of lease %s: %w: %w", c.ID, p.token, why, err))
	}
	return why
}

// try calls the handler, and again with backoff if it fails. Trying again does not help an item that
// does not decode.
func (p *partition) try(b Batch, again bool) error {
	delay := p.RetryDelay
	for retry := 0; ; retry++ {
		err := p.call(b)
		_, decided := errors.AsType[*ItemError](err)
		if err == nil || p.holding.Err() != nil || !again || retry == p.Retries || decided && p.Poison != nil {
			return err
		}
		p.failed(p.token, fmt.Errorf("handling changes of lease %s, call %d: %w", p.token, retry+1, err))
		pause(p.holding, delay)
		delay = min(2*delay, maxRetryDelay)
		if p.holding.Err() != nil {
			return err
		}
	}
}

// call calls the handler; a panic is its error.
func (p *partition) call(b Batch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", v, strings.TrimSpace(string(debug.Stack())))
		}
	}()
	return p.Handle(p.holding, b)
}
