package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
)

// Inspect prints which documents are the first that a partition has not processed. It writes nothing.
func Inspect(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "inspect NAME PARTITION", Short: "name the first documents that a partition has not processed", GroupID: GroupLook,
		Example:     "feedscale inspect orders 3\nfeedscale inspect orders 05C1DF --count 5\nfeedscale inspect orders 3 --document --output json | jq '.documents[].document'",
		Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := flagsOf(c)
	o := inspectOptions{count: 1}
	f.file(&o.file)
	f.output(&o.output, "table", "json")
	number(f, &o.count, "count", wholeNumbers, 1, 100, "how many documents, of each range after a split; a page of the feed may have fewer")
	f.BoolVar(&o.contents, "document", false, "print the contents, too")
	c.ValidArgsFunction = processorNames(env, &o.file)
	c.RunE = func(c *cobra.Command, args []string) error {
		f.mistake(len(args) != 2, "inspect: a processor and one of its partitions are needed, as in feedscale inspect orders 3; feedscale poll --dry-run --partitions lists them")
		if err := f.mistakes(); err != nil {
			return err
		}
		return runInspect(c.Context(), env, o, args[0], args[1])
	}
	return c
}

type inspectOptions struct {
	file, output string // "" is the file of the settings
	count        int
	contents     bool
}

// inspection is what `inspect --output json` prints (docs/operate.md).
type inspection struct {
	Processor string            `json:"processor"`
	Lease     string            `json:"lease"` // lease token
	Range     *changefeed.Range `json:"range"` // of an EPK lease; else null
	Owner     *string           `json:"owner"`
	Position  *string           `json:"position"`  // the lease's continuation; null where it has none
	Splitting bool              `json:"splitting"` // documents are those of the ranges that replaced the lease's
	Note      *string           `json:"note"`      // why no document is pending, or none can be told
	Documents []pending         `json:"documents"` // oldest first within a range
}

// pending is a document that is not processed yet.
type pending struct {
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

func runInspect(ctx context.Context, env Env, o inspectOptions, name, partition string) error {
	c, err := readConfig(env, o.file)
	if err != nil {
		return err
	}
	if err := known(c, []string{name}); err != nil {
		return err
	}
	at := slices.IndexFunc(c.Processors, func(p config.Processor) bool { return p.Name == name })
	p, err := misused(connect.New(c.Settings).Processor(c.Processors[at]))
	if err != nil {
		return err
	}
	found, err := await(ctx, env, "the first documents of "+name, func() (*inspection, error) {
		return inspect(ctx, p, partition, o, env.Now())
	})
	if err != nil {
		return err
	}
	if o.output == "json" {
		return console.WriteJSON(env.Stdout, found)
	}
	return found.write(console.Lines{Writer: env.Stdout}, env.Style())
}

// inspect reads the leases of a processor as a poll does, and what follows the position of one of them.
func inspect(ctx context.Context, p poller.Processor, partition string, o inspectOptions, now time.Time) (*inspection, error) {
	described, _, err := p.Account.Describe(ctx, p.Container)
	if err != nil {
		return nil, err
	}
	prefixes, err := p.Identity(described.RID).Prefixes()
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		texts[i] = prefix.Text
	}
	documents, _, err := p.LeaseAccount.Leases(ctx, p.LeaseContainer, texts)
	if err != nil && !errors.Is(err, cosmos.ErrMissing) {
		return nil, err
	}
	for i := range documents {
		documents[i].LimitTime(now)
	}
	leases, err := changefeed.Sorted(documents).Select(prefixes, p.LeaseFormat)
	if err != nil {
		return nil, err
	}
	token, err := misused(tokenOf(leases, p.Name, partition))
	if err != nil {
		return nil, err
	}
	ranges, _, err := p.Account.Ranges(ctx, p.Container)
	if err != nil {
		return nil, err
	}
	planned := changefeed.Plan(leases, ranges, p.StartFrom)
	l := planned[slices.IndexFunc(planned, func(l *changefeed.Planned) bool { return l.Token == token })]
	if l.Err != nil {
		return nil, fmt.Errorf("lease %s: %w", l.ID, l.Err)
	}
	found := &inspection{
		Processor: p.Name, Lease: l.Token, Range: l.Range, Owner: given(l.Owner), Position: given(l.Continuation), Splitting: l.Splitting, Documents: []pending{},
	}
	switch {
	case l.Leftover:
		found.Note = given("other leases replaced this one: inspect those")
	case l.Uncheckpointed(l.Start):
		found.Note = given("the lease has no checkpoint and its processor starts from now, so that only the memory of its owner knows the position")
	default:
		for _, share := range l.Shares {
			if err := found.read(ctx, p, l, share, described.PartitionKey, o); err != nil {
				return nil, err
			}
		}
		if len(found.Documents) == 0 {
			found.Note = given("nothing is pending")
		}
	}
	return found, nil
}

// read adds the first documents of a share of the lease.
func (f *inspection) read(ctx context.Context, p poller.Processor, l *changefeed.Planned, share changefeed.Share, paths []string, o inspectOptions) error {
	position := cosmos.Position{Mode: l.Mode, Range: share.Of.ID, Part: share.Part()}
	position.Continuation, position.Since = l.From(l.Start)
	var documents []json.RawMessage
	var answered time.Time
	reading, gone, err := changefeed.ReadOn(position.Continuation, func(continuation string) (changefeed.Answer, error) {
		position.Continuation = continuation
		answer, page, err := p.Account.Documents(ctx, p.Container, position, o.count)
		documents, answered = page, answer.Date
		return answer, err
	})
	switch {
	case err != nil:
		return err
	case gone:
		return fmt.Errorf("range %s is being split or merged and cannot be read: ask again in a minute", share.Of.ID)
	case reading.More:
		return fmt.Errorf("range %s answers with empty pages, which do not say what is pending: ask again in a minute", share.Of.ID)
	}
	for _, item := range documents {
		d := newPending(item, l.Mode, share.Of.ID, paths, answered)
		if !o.contents {
			d.Document = nil
		}
		f.Documents = append(f.Documents, d)
	}
	return nil
}

// newPending reads an item of the feed: a document or, in all-versions mode, an envelope. What cannot be
// read stays unknown, since the document may be the odd one that the processor is stuck on.
func newPending(item json.RawMessage, mode changefeed.Mode, rangeID string, paths []string, answered time.Time) pending {
	d, document, about, lsn, written := pending{RangeID: rangeID}, item, item, "_lsn", "_ts"
	if mode == changefeed.FullFidelity {
		about, lsn, written = field(item, "metadata"), "lsn", "crts"
		d.Operation = read[string](about, "operationType")
		if document = field(item, "current"); d.Operation != nil && *d.Operation == "delete" {
			document = field(item, "previous") // the current one is an empty object
		}
	}
	d.ID, d.LSN = cmp.Or(read[string](document, "id"), read[string](about, "id")), read[int64](about, lsn)
	if seconds := read[int64](about, written); seconds != nil {
		d.Written = new(time.Unix(*seconds, 0).UTC())
		if !answered.IsZero() {
			d.Age = new(max(0, int64(answered.Sub(*d.Written)/time.Second)))
		}
	}
	if document != nil {
		d.Bytes, d.Document = new(len(document)), document
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

// read is a field of some type; nil if there is none or it is of another type.
func read[T any](of json.RawMessage, names ...string) *T {
	var v *T
	if raw := field(of, names...); raw == nil || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// given is nil for what is empty.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
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
		return "", fmt.Errorf("processor %s has no lease; feedscale poll --dry-run --explain %s says why", name, name)
	case len(fit) == 0:
		return "", fmt.Errorf("processor %s has no partition %q; it has %s", name, partition, listed(all))
	default:
		return "", fmt.Errorf("several partitions of processor %s begin with %q: %s", name, partition, listed(fit))
	}
}

// minusToken is the beginning of an EPK lease's token whose range has no lower bound.
var minusToken = regexp.MustCompile(`^-[0-9A-F]+…?$`)

// tokenLast puts such a token after the flags, of which it is none.
func tokenLast(args []string) []string {
	at := slices.IndexFunc(args, minusToken.MatchString)
	if at < 1 || args[0] != "inspect" || args[at-1] == "--count" || slices.Contains(args, "--") {
		return args
	}
	return slices.Concat(args[:at], args[at+1:], []string{"--", args[at]})
}

// write prints the inspection for a person: a line for each fact.
func (f *inspection) write(w io.Writer, style console.Style) error {
	style.Wrap = true
	var b strings.Builder
	table := func(facts ...string) { // a name and a value, in turn; those without a value are left out
		var rows [][]console.Cell
		for fact := range slices.Chunk(facts, 2) {
			if fact[1] != "" {
				rows = append(rows, []console.Cell{{Text: fmt.Sprintf("%-13s", fact[0]), Color: console.Dim}, {Text: fact[1]}})
			}
		}
		b.WriteString(style.Table(rows))
	}
	table("processor", f.Processor, "partition", f.Lease, "owner", or(f.Owner, "nobody"), "position", or(f.Position, "no checkpoint"), "note", or(f.Note, ""))
	for _, d := range f.Documents {
		keys := make([]string, len(d.Key))
		for i, k := range d.Key {
			keys[i] = string(k)
		}
		size, written := "?", "?"
		if d.Bytes != nil {
			size = fmt.Sprintf("%d bytes", *d.Bytes)
		}
		if d.Written != nil && d.Age != nil {
			written = d.Written.Format(time.RFC3339) + ", " + report.Age(d.Age) + " ago"
		}
		b.WriteString("\n")
		table("document", or(d.ID, "?"), "partition key", strings.Join(keys, ", "), "size", size, "written", written,
			"LSN", console.Number(d.LSN), "range", d.RangeID, "operation", or(d.Operation, ""))
		if d.Document != nil {
			contents := bytes.NewBufferString("\n")
			if err := json.Indent(contents, d.Document, "", "  "); err != nil {
				return err
			}
			b.WriteString(contents.String() + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// or is a text, or what is said in place of none.
func or(text *string, none string) string {
	if text == nil {
		return none
	}
	return *text
}
