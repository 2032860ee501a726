package estimator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// model computes what is pending in a container from its whole feed, read with plain requests.
type model struct {
	t         *testing.T
	endpoint  string
	http      *http.Client
	container string

	shards []shard         // those that exist now, in key order
	feeds  map[string]feed // read since the container changed last, by range and part
}

// shard is a partition key range, as the service describes it.
type shard struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"`
	Status  string   `json:"status"`
}

func (s shard) span() changefeed.Range { return changefeed.Range{Min: s.Min, Max: s.Max} }

func (s shard) splitting() bool { return s.Status == "splitting" }

// feed is everything that a part of a range has.
type feed struct {
	changes []change // in the order of their LSNs
	session int64
}

type change struct{ LSN, TS int64 }

// written forgets what was read before the documents changed.
func (m *model) written() { m.feeds = make(map[string]feed) }

// reshaped reads which ranges there are after a split or a merge.
func (m *model) reshaped() {
	m.written()
	var list struct{ PartitionKeyRanges []shard }
	m.get("/pkranges", nil, &list)
	m.shards = list.PartitionKeyRanges
	slices.SortFunc(m.shards, func(a, b shard) int { return strings.Compare(fill(a.Min), fill(b.Min)) })
}

func (m *model) get(path string, header map[string]string, into any) http.Header {
	m.t.Helper()
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, m.endpoint+"dbs/"+database+"/colls/"+m.container+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "type=aad&ver=1.0&sig=model")
	request.Header.Set("x-ms-version", "2020-11-05")
	request.Header.Set("x-ms-cosmos-sdk-supportedcapabilities", "1")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := m.http.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		m.t.Fatal(err)
	}
	switch response.StatusCode {
	case http.StatusNotModified:
	case http.StatusOK:
		if err := json.Unmarshal(body, into); err != nil {
			m.t.Fatal(err)
		}
	default:
		m.t.Fatalf("%s: %s: %s", path, response.Status, body)
	}
	return response.Header
}

// page reads a page of at most n changes behind an LSN, or one transaction, and where the next one
// starts.
func (m *model) page(of shard, part changefeed.Range, after int64, n int) (changes []change, next, session int64) {
	m.t.Helper()
	header := map[string]string{
		"A-IM": "Incremental Feed", "x-ms-max-item-count": strconv.Itoa(n),
		"x-ms-documentdb-partitionkeyrangeid": of.ID, "If-None-Match": etag(after),
	}
	if part != of.span() {
		header["x-ms-read-key-type"] = "EffectivePartitionKeyRange"
		header["x-ms-start-epk"], header["x-ms-end-epk"] = part.Min, part.Max
	}
	var page struct {
		Documents []struct {
			LSN int64 `json:"_lsn"`
			TS  int64 `json:"_ts"`
		}
	}
	answer := m.get("/docs", header, &page)
	for _, d := range page.Documents {
		changes = append(changes, change{d.LSN, d.TS})
	}
	next, err := strconv.ParseInt(strings.Trim(answer.Get("ETag"), `"`), 10, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	if session, err = strconv.ParseInt(answer.Get("lsn"), 10, 64); err != nil {
		m.t.Fatal(err)
	}
	return changes, next, session
}

// feed reads all that a part of a range has.
func (m *model) feed(of shard, part changefeed.Range) feed {
	m.t.Helper()
	key := fmt.Sprint(of.ID, part)
	f, read := m.feeds[key]
	for at := int64(0); !read; {
		const full = 1000
		changes, next, session := m.page(of, part, at, full)
		f.changes, f.session, at = append(f.changes, changes...), session, next
		read = len(changes) < full
	}
	m.feeds[key] = f
	return f
}

// pending is the LSN arithmetic for a part of a range behind a position, and the time of its oldest
// change; 0 where there is nothing.
func (m *model) pending(of shard, part changefeed.Range, position int64) (lag, since int64) {
	m.t.Helper()
	f := m.feed(of, part)
	for _, c := range f.changes {
		if c.LSN > position {
			return f.session - c.LSN + 1, c.TS
		}
	}
	return 0, 0
}

func (m *model) overlapping(span changefeed.Range) []shard {
	var found []shard
	for _, s := range m.shards {
		if overlap(s.span(), span) {
			found = append(found, s)
		}
	}
	return found
}

// claim is a lease with the parts of ranges that it stands for.
type claim struct {
	*lease
	parts []part
	alive bool // its range exists; an EPK lease's keys are in one range
}

type part struct {
	shard
	keys changefeed.Range
}

func (m *model) claim(s *simulated, l *lease) claim {
	c := claim{lease: l}
	for _, r := range m.shards {
		switch {
		case l.epk != nil:
			if overlap(r.span(), *l.epk) {
				c.parts = append(c.parts, part{r, clip(r.span(), *l.epk)})
			}
		case r.ID == l.token:
			c.parts, c.alive = []part{{r, r.span()}}, true
		case !slices.Contains(r.Parents, l.token):
		case !s.bounds:
			c.parts = append(c.parts, part{r, r.span()})
		case overlap(r.span(), l.was):
			c.parts = append(c.parts, part{r, clip(r.span(), l.was)})
		}
	}
	if l.epk != nil {
		c.alive = len(c.parts) == 1
	}
	return c
}

// keys are all that a lease stands for.
func (c claim) keys() changefeed.Range {
	return changefeed.Range{Min: c.parts[0].keys.Min, Max: c.parts[len(c.parts)-1].keys.Max}
}

// doubled reports whether another lease covers the same keys, one of the two by range id and the
// other by bounds, and is newer: then that one counts. For a range that is gone only the lease
// itself says which keys it had.
func (c claim) doubled(by claim, bounds bool) bool {
	pk, epk := c, by
	if c.epk != nil {
		pk, epk = by, c
	}
	if pk.epk != nil || epk.epk == nil || pk.was != epk.was || !pk.alive && !bounds {
		return false
	}
	return pk.renewed.After(epk.renewed) == (c.epk != nil)
}

// replaces reports whether a lease replaced another, whose range is gone: its own range exists, or
// it is for a part of the other's keys, or it is the EPK lease for exactly the keys of a PK-range
// lease.
func (c claim) replaces(old claim) bool {
	switch {
	case old.alive || c.lease == old.lease:
		return false
	case c.alive:
		return true
	case c.keys() == old.keys():
		return c.epk != nil && old.epk == nil
	default:
		return within(c.keys(), old.keys())
	}
}

// expectation is what the estimator must say of a lease.
type expectation struct {
	unreadable  bool // a range of it cannot be read while it is split
	lag         int64
	sub         string // id of the range of which it has only a part: the lag is at least 1 and at most this
	status      changefeed.Status
	approximate bool
	age         *int64
}

// expect says what the estimator must find, by lease token.
func (m *model) expect(s *simulated, now time.Time) map[string]expectation {
	m.t.Helper()
	var all []claim
	for _, l := range s.leases {
		all = append(all, m.claim(s, l))
	}
	claims := slices.DeleteFunc(slices.Clone(all), func(c claim) bool {
		return slices.ContainsFunc(all, func(o claim) bool { return c.doubled(o, s.bounds) })
	})
	expected := make(map[string]expectation)
	for _, c := range claims {
		counted := c.parts
		var covers []changefeed.Range
		for _, o := range claims {
			if o.replaces(c) {
				covers = append(covers, o.keys())
			}
		}
		if !c.alive {
			counted = slices.DeleteFunc(slices.Clone(counted), func(p part) bool { return covered(p.keys, covers) })
		}
		if len(counted) > 0 {
			expected[c.token] = m.measure(c, counted, c.position == unset && s.processor.StartFrom.Now(), now)
		}
	}
	return expected
}

// measure is what a lease lags by; one that is uncheckpointed has nothing that anybody could know.
func (m *model) measure(c claim, counted []part, uncheckpointed bool, now time.Time) expectation {
	m.t.Helper()
	e := expectation{status: changefeed.StatusOK}
	wakes := !c.alive
	for _, p := range counted {
		if p.splitting() { // its feed cannot be read until the split is done
			wakes = true
			e.unreadable = true
			e.approximate = true
			continue
		}
		if uncheckpointed {
			continue
		}
		lag, since := m.pending(p.shard, p.keys, max(0, c.position))
		e.lag = max(e.lag, lag) // the greatest child
		if age := now.Unix() - since; lag > 0 && (e.age == nil || age > *e.age) {
			e.age = &age
		}
		if c.alive && p.keys != p.span() && lag > 0 {
			e.sub, e.approximate = p.ID, true
		}
	}
	switch {
	case e.unreadable:
		e.lag, e.status, e.approximate = 1, changefeed.StatusSplitting, true
	case wakes:
		e.lag, e.status, e.approximate = max(1, e.lag), changefeed.StatusSplitting, true
	case uncheckpointed:
		e.status, e.approximate = changefeed.StatusUncheckpointed, true
	case e.lag > 0:
		e.status = changefeed.StatusLagging
	}
	return e
}

// The arithmetic of keys, by bounds of one length.

func fill(bound string) string { return bound + strings.Repeat("0", 40-len(bound)) }

func overlap(a, b changefeed.Range) bool {
	return fill(a.Min) < fill(b.Max) && fill(b.Min) < fill(a.Max)
}

func within(a, b changefeed.Range) bool {
	return fill(b.Min) <= fill(a.Min) && fill(a.Max) <= fill(b.Max)
}

func clip(a, b changefeed.Range) changefeed.Range {
	if fill(b.Min) > fill(a.Min) {
		a.Min = b.Min
	}
	if fill(b.Max) < fill(a.Max) {
		a.Max = b.Max
	}
	return a
}

// covered reports whether the others cover all of a range.
func covered(r changefeed.Range, others []changefeed.Range) bool {
	for i, o := range others {
		if !overlap(r, o) {
			continue
		}
		left := changefeed.Range{Min: r.Min, Max: o.Min}
		right := changefeed.Range{Min: o.Max, Max: r.Max}
		return (fill(left.Min) >= fill(left.Max) || covered(left, others[i+1:])) &&
			(fill(right.Min) >= fill(right.Max) || covered(right, others[i+1:]))
	}
	return false
}
