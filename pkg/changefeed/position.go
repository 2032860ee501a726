package changefeed

import (
	"cmp"
	"strconv"
	"time"
)

// Position says from where to read in the change feed of a container.
type Position struct {
	Mode         Mode
	Range        string    // partition key range id
	Part         Range     // the part of that range to read; zero = all of it
	Continuation string    // an ETag, sent as it is; "" = from Since, FromNow = from now
	Since        time.Time // sent with a precision of one second; zero = none, from the beginning without a Continuation
}

// FromNow is the continuation of a read that answers with the newest LSN and without changes.
const FromNow = "*"

// Position is where a share of the lease is read from.
func (l *Lease) Position(s Share, start StartFrom) Position {
	p := Position{Mode: l.Mode, Range: s.Of.ID, Part: s.Part(), Continuation: l.Continuation}
	switch {
	case l.Uncheckpointed(start):
		p.Continuation = FromNow
	case l.Continuation == "" || l.StartFrom != nil: // Java sends a start time with the token, too (azure-sdk-for-java, PR #48752)
		p.Since = l.begins(start).Time
	}
	return p
}

// httpTime is the form of a time in a header; the domain does not import net/http.
const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

// Headers sets the headers of a read from the position. A part of a range is addressed as the .NET SDK does
// (azure-cosmos-dotnet-v3, RequestInvokerHandler.cs and ChangeFeedModeFullFidelity.cs).
func (p Position) Headers(set func(name, value string)) {
	set("X-Ms-Documentdb-Partitionkeyrangeid", p.Range)
	if p.Part != (Range{}) {
		set("X-Ms-Read-Key-Type", "EffectivePartitionKeyRange")
		set("X-Ms-Start-Epk", p.Part.Min)
		set("X-Ms-End-Epk", p.Part.Max)
	}
	if p.Mode == FullFidelity {
		set("A-Im", "Full-Fidelity Feed")
		set("X-Ms-Cosmos-Changefeed-Wire-Format-Version", "2021-09-15")
	} else {
		set("A-Im", "Incremental Feed")
	}
	if p.Continuation != "" {
		set("If-None-Match", p.Continuation)
	}
	if !p.Since.IsZero() {
		set("If-Modified-Since", p.Since.UTC().Format(httpTime))
	}
}

// AnswerOf is the answer with a status and headers, without its page. A header that is absent is "".
func AnswerOf(status int, header func(name string) string) Answer {
	a := Answer{Status: status, SessionToken: header("X-Ms-Session-Token"), ContainerRID: header("X-Ms-Content-Path"), ETag: header("Etag")}
	a.Substatus, _ = strconv.Atoi(cmp.Or(header("X-Ms-Substatus"), "0")) // most have none, and an error of Atoi costs CPU
	a.Date, _ = time.Parse(httpTime, header("Date"))
	return a
}
