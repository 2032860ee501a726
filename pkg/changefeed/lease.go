package changefeed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Lease is one document of a lease container: the position of a change feed processor in one
// partition, and its owner.
type Lease struct {
	ID           string
	Token        string     // a partition key range id; for an EPK lease, its bounds as min-max
	Range        *Range     // bounds of an EPK lease; nil for a PK-range lease
	Bounds       *Range     // bounds of the range of a PK-range lease; nil if the lease does not hold them
	Mode         Mode       // of the change feed that the processor reads
	Format       Format     // says which SDK wrote it
	Owner        string     // "" if nobody owns it
	Continuation string     // the checkpoint: ETag of the last page that was processed, as it was sent; "" if there is none yet
	StartFrom    *StartFrom // where the processor starts, if the lease itself says so (Java's EPK leases); else nil
	Time         time.Time  // when the owner last renewed it; zero if unknown
	BadTime      bool       // the lease has a time that no owner can have written: Time is that of _ts, or zero
	TS           int64      // _ts: when the document was last written, in Unix seconds
}

// Mode says which change feed a processor reads.
type Mode string

// The modes of the change feed.
const (
	Incremental  Mode = ""              // latest version: the newest version of each changed document
	FullFidelity Mode = "full fidelity" // all versions and deletes
)

// ParseMode reads the Mode that .NET writes into a lease and Java into its continuation, in any
// case. Any other text is Incremental, as for .NET (DocumentServiceLeaseManager.cs).
func ParseMode(text string) Mode {
	switch strings.ToUpper(text) {
	case "FULL-FIDELITY FEED", "FULL_FIDELITY", "ALL_VERSIONS_AND_DELETES":
		return FullFidelity
	}
	return Incremental
}

// LeaseFields are the properties of a lease document that ParseLease reads, for a query that projects them.
var LeaseFields = []string{"id", "LeaseToken", "PartitionId", "Owner", "ContinuationToken", "Mode", "_ts", "FeedRange", "feedRange", "timestamp", "version"}

// leaseTypes are the types that the first of LeaseFields have to have. The others may have any.
var leaseTypes = [...]gjson.Type{gjson.String, gjson.String, gjson.String, gjson.String, gjson.String, gjson.String, gjson.Number, gjson.JSON, gjson.JSON}

// leaseFields are the values of LeaseFields in a document.
type leaseFields [11]gjson.Result

func (f *leaseFields) of(name string) *gjson.Result { return &f[slices.Index(LeaseFields, name)] }

// The most that a lease may have, in bytes. The SDKs write a name of a machine or a process as the owner,
// and a number, or two bounds of a range, as the token.
const (
	MaxName         = 1 << 10
	maxContinuation = 256 << 10 // Java's holds the state of its range as base64
	maxPosition     = 16 << 10  // what is sent as a header
)

// ParseLease reads a lease as the .NET v3 SDK, the Java SDK and the legacy V2 library write it
// (docs/lag.md, Formats of leases): PK-range leases, and EPK leases, which have version 1. If it cannot, the
// error says why, and the Lease holds what could be read, its ID at best and the Token in that, so that the
// partition can be reported as unknown.
func ParseLease(document []byte) (Lease, error) {
	var f leaseFields
	err := f.read(document)
	token, ts, continuation := cmp.Or(f.of("LeaseToken").Str, f.of("PartitionId").Str), f.of("_ts").Int(), f.of("ContinuationToken").Str
	prefix, named := splitLeaseID(f.of("id").Str)
	l := Lease{
		ID: f.of("id").Str, TS: ts, Time: leaseTime(f.of("timestamp").Str, ts), Owner: Visible(f.of("Owner").Str), Token: Visible(cmp.Or(token, named)),
		Mode: ParseMode(f.of("Mode").Str),
	}
	_, byRID := ReadRIDs(prefix)
	switch {
	case f.of("LeaseToken").Str == "" && token != "":
		l.Format = FormatV2
	case byRID:
		l.Format = FormatDotNetPK
	default:
		l.Format = FormatJavaPK
	}
	switch {
	case err != nil:
		return l, err
	case token == "":
		return l, errors.New("it has neither LeaseToken nor PartitionId")
	case token != l.Token:
		return l, fmt.Errorf("its token is longer than %d bytes, or holds characters that cannot be seen", MaxName)
	case len(continuation) > maxContinuation:
		return l, fmt.Errorf("its ContinuationToken is longer than %d bytes", maxContinuation)
	}
	l.Continuation = continuation
	feedRange, java := f.of("FeedRange"), f.of("feedRange") // of .NET, of Java
	if java.Exists() {
		feedRange = java
	}
	if r := feedRange.Get("Range"); r.IsObject() { // else it is a range id or a partition key
		l.Bounds = &Range{r.Get("min").Str, r.Get("max").Str}
	}
	if !l.Bounds.valid() {
		l.Bounds = nil
	}
	// The discriminator of the .NET SDK (DocumentServiceLeaseConverter.cs): 1 is an EPK lease,
	// anything else a PK-range lease.
	if f.of("version").Raw == "1" {
		l.Format = FormatDotNetEPK
		if java.Exists() {
			l.Format = FormatJavaEPK
		}
		if err := l.readEPK(); err != nil {
			return l, err
		}
	}
	if len(l.Continuation) > maxPosition || strings.ContainsFunc(l.Continuation, unicode.IsControl) {
		l.Continuation = ""
		return l, fmt.Errorf("the position in its ContinuationToken is longer than %d bytes, or holds control characters", maxPosition)
	}
	return l, nil
}

// read reads the properties of a lease, in half of the CPU that encoding/json takes. The error is that one
// is of another type.
func (f *leaseFields) read(document []byte) (err error) {
	properties := gjson.ParseBytes(document)
	if !json.Valid(document) || !utf8.Valid(document) || !properties.IsObject() {
		return errors.New("it is no JSON object")
	}
	properties.ForEach(func(name, value gjson.Result) bool {
		i := slices.Index(LeaseFields, name.Str)
		if i < 0 {
			return true
		}
		if f[i] = value; i < len(leaseTypes) && value.Type != leaseTypes[i] && value.Type != gjson.Null {
			err = fmt.Errorf("its %s is of type %s, which no SDK writes", name.Str, value.Type)
		}
		return true
	})
	return err
}

// Visible is a name from a lease as it may stand in a log, on a terminal or on a page: without characters that
// control these or cannot be seen, and no longer than MaxName.
func Visible(name string) string {
	if len(name) > MaxName {
		name = strings.ToValidUTF8(name[:MaxName], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, name)
}

// readEPK completes a lease of version 1: it unwraps the continuation of Java's, and finds the
// bounds.
func (l *Lease) readEPK() error {
	l.Range, l.Bounds = l.Bounds, nil
	if state, wrapped := parseState(l.Continuation); wrapped {
		l.Format = FormatJavaEPK
		if err := l.applyState(state); err != nil {
			return err
		}
	}
	if l.Range != nil {
		return nil
	}
	low, high, ok := strings.Cut(l.Token, "-")
	if named := (&Range{Min: low, Max: high}); ok && named.valid() {
		l.Range = named
		return nil
	}
	return errors.New("it is of version 1, and neither FeedRange nor LeaseToken has the bounds of its range")
}

// leaseTime reads the timestamp of a lease. .NET leaves it null until the first update, and Java
// appends a zone in brackets when it creates a lease. If it cannot be read, _ts is used.
func leaseTime(s string, ts int64) time.Time {
	if s, _, _ = strings.Cut(s, "["); s != "" {
		for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} { // Java leaves out seconds that are zero
			if t, err := time.Parse(layout, s); err == nil && t.Year() != 1 { // 1 is .NET's DateTime without a value
				return t.UTC()
			}
		}
	}
	if ts > 0 {
		return time.Unix(ts, 0).UTC()
	}
	return time.Time{}
}

// maxAhead is how far the clock of an owner may be ahead.
const maxAhead = 24 * time.Hour

// limitTime takes a time that no owner can have written for none: one before the year 1, or more than a day
// after now (docs/security.md, Limits). It would be the newest for good.
func (l *Lease) limitTime(now time.Time) {
	latest := now.Add(maxAhead)
	if year := l.Time.Year(); year >= 1 && year <= 9999 && !l.Time.After(latest) {
		return
	}
	l.Time, l.BadTime = time.Time{}, true
	if 0 < l.TS && l.TS <= latest.Unix() {
		l.Time = time.Unix(l.TS, 0).UTC()
	}
}

// Newer reports whether a lease is newer than another one for the same partition, and so the one
// that counts: by its timestamp, then by its _ts.
func (l Lease) Newer(b Lease) bool {
	return cmp.Or(l.Time.Compare(b.Time), cmp.Compare(l.TS, b.TS)) > 0
}

// StartFrom says where a processor starts to read a lease that has no continuation yet. The zero
// value is now: changes that were written before the processor started are not read.
type StartFrom struct {
	Beginning bool
	Time      time.Time // start at this time; zero for now and for the beginning
}

// Now reports whether the processor starts from now. Then the lag of a lease without a continuation
// cannot be measured.
func (s StartFrom) Now() bool { return !s.Beginning && s.Time.IsZero() }

// StartAt is the start at a time. The year 1 is how the SDKs write the beginning
// (WithStartTime(DateTime.MinValue) of .NET), and Go's zero time.
func StartAt(t time.Time) StartFrom {
	if t.UTC().Year() <= 1 {
		return StartFrom{Beginning: true}
	}
	return StartFrom{Time: t.UTC()}
}

// begins is where a lease without a continuation begins: as it says itself, or else as its processor is
// told to start.
func (l *Lease) begins(start StartFrom) StartFrom {
	return *cmp.Or(l.StartFrom, &start)
}

// Uncheckpointed reports whether the position of the lease is in its owner's memory alone. The feed of all
// versions and deletes can be read from now on only, whatever start says.
func (l *Lease) Uncheckpointed(start StartFrom) bool {
	return l.Continuation == "" && (l.begins(start).Now() || l.Mode == FullFidelity)
}
