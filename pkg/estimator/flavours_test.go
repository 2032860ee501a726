package estimator_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// flavour is what kind of leases a processor keeps.
type flavour struct {
	name    string
	epk     bool // for every range from the first; else only for what was merged
	java    bool // ids by names for PK-range leases, wrapped continuations for EPK leases
	v2      bool // PartitionId in place of LeaseToken
	bounds  bool // PK-range leases say what their range is
	merging bool // knows what to do after a merge
}

func flavours() []flavour {
	return []flavour{
		{name: ".NET", bounds: true, merging: true},
		{name: ".NET before FeedRange", merging: true},
		{name: ".NET EPK", epk: true, merging: true},
		{name: "Java", java: true},
		{name: "Java EPK", epk: true, java: true, merging: true},
		{name: "V2", v2: true},
	}
}

// lease is what a processor knows of one of its leases.
type lease struct {
	token    string
	epk      *changefeed.Range // nil for a PK-range lease
	was      changefeed.Range  // keys of the range it was made for
	position int64             // LSN of the checkpoint; unset before the first
	renewed  time.Time
}

const unset = -1

// simulated is a processor that keeps leases as its SDK does.
type simulated struct {
	flavour
	processor estimator.Processor
	rid       string
	leases    []*lease
}

func (s *simulated) id(l *lease) string {
	if s.java && l.epk == nil {
		return fmt.Sprintf("%s%s_%s_%s..%s", s.processor.ProcessorName, s.processor.AccountHost, database, s.processor.Container.ID, l.token)
	}
	databaseRID, err := changefeed.DatabaseRID(s.rid)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s%s_%s_%s..%s", s.processor.ProcessorName, strings.ToLower(s.processor.AccountHost), databaseRID, s.rid, l.token)
}

// document is the lease as its SDK writes it.
func (s *simulated) document(l *lease) map[string]any {
	d := map[string]any{
		"id": s.id(l), "LeaseToken": l.token, "Owner": "worker", "ContinuationToken": nil,
		"timestamp": l.renewed.UTC().Format(time.RFC3339Nano),
	}
	if l.position != unset {
		d["ContinuationToken"] = etag(l.position)
	}
	span := map[string]any{"Range": map[string]any{"min": l.was.Min, "max": l.was.Max}}
	switch {
	case s.java && l.epk != nil:
		d["version"], d["feedRange"], d["ContinuationToken"] = 1, span, s.state(l)
	case l.epk != nil:
		d["version"], d["FeedRange"], d["Mode"] = 1, span, "Incremental Feed"
	case s.v2:
		delete(d, "LeaseToken")
		d["PartitionId"], d["gremlincompatid"] = l.token, d["id"]
	case !s.java:
		d["version"] = 0
		if s.bounds {
			d["FeedRange"], d["Mode"] = span, "Incremental Feed"
		}
	}
	return d
}

// state is what the Java SDK wraps a position in.
func (s *simulated) state(l *lease) string {
	from, token := "NOW", "null"
	if s.processor.StartFrom.Beginning {
		from = "BEGINNING"
	}
	if l.position != unset {
		token = fmt.Sprintf("%q", etag(l.position))
	}
	span := fmt.Sprintf(`{"min":%q,"max":%q}`, l.was.Min, l.was.Max)
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil,
		`{"V":1,"Rid":%q,"Mode":"INCREMENTAL","StartFrom":{"Type":%q},"Continuation":{"V":1,"Rid":%q,"Continuation":[{"token":%s,"range":%s}],"Range":%s}}`,
		s.rid, from, s.rid, token, span, span))
}

func etag(lsn int64) string { return fmt.Sprintf("%q", fmt.Sprint(lsn)) }

// find returns the lease with a token, nil where there is none.
func (s *simulated) find(token string) *lease {
	for _, l := range s.leases {
		if l.token == token {
			return l
		}
	}
	return nil
}

// newLease is a lease of a range.
func (s *simulated) newLease(of shard, position int64) *lease {
	if s.epk {
		return epkLease(of.span(), position)
	}
	return &lease{token: of.ID, was: of.span(), position: position}
}

func epkLease(span changefeed.Range, position int64) *lease {
	return &lease{token: span.Min + "-" + span.Max, epk: &span, was: span, position: position}
}

// replacements are the leases that take the place of one whose range was split
// or merged: after a split one for each child, at the parent's position; after
// a merge, one with the keys of before.
func (s *simulated) replacements(l *lease, m *model) []*lease {
	var replacing []*lease
	overlapping := m.overlapping(l.was)
	for _, child := range overlapping {
		switch {
		case l.epk != nil:
			replacing = append(replacing, epkLease(clip(child.span(), l.was), l.position))
		case len(overlapping) == 1 && s.merging:
			replacing = append(replacing, epkLease(l.was, l.position))
		default:
			replacing = append(replacing, s.newLease(child, l.position))
		}
	}
	return replacing
}
