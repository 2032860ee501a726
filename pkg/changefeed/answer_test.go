package changefeed_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule              string
		status, substatus int
		want              changefeed.Outcome
	}{
		{"a page", 200, 0, changefeed.Answered},
		{"nothing new", 304, 0, changefeed.Answered},
		{"the range was split or merged", 410, 1002, changefeed.Gone},
		{"the range is being split", 410, 1007, changefeed.Gone},
		{"the partition moves", 410, 1008, changefeed.Transient},
		{"the name cache is stale", 410, 1000, changefeed.Transient},
		{"gone without a reason", 410, 0, changefeed.Transient},
		{"request timeout", 408, 0, changefeed.Transient},
		{"throttled", 429, 3200, changefeed.Transient},
		{"retry with", 449, 0, changefeed.Transient},
		{"server error", 500, 0, changefeed.Transient},
		{"bad gateway", 502, 0, changefeed.Transient},
		{"unavailable", 503, 0, changefeed.Transient},
		{"gateway timeout", 504, 0, changefeed.Transient},
		{"the session is not there yet, which is no missing container", 404, 1002, changefeed.Transient},
		{"bad request", 400, 0, changefeed.Refused},
		{"bad key", 401, 0, changefeed.Refused},
		{"missing permission", 403, 5300, changefeed.Refused},
		{"missing container", 404, 1003, changefeed.Refused},
		{"anything else", 412, 0, changefeed.Refused},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := changefeed.OutcomeOf(c.status, c.substatus); got != c.want {
				t.Errorf("OutcomeOf(%d, %d) = %d, want %d", c.status, c.substatus, got, c.want)
			}
		})
	}
}

// measure reads a page and what it counts.
func measure(a changefeed.Answer, body []byte, mode changefeed.Mode) (changefeed.Reading, error) {
	if a.Status == 200 {
		var err error
		if a.Page, err = changefeed.ReadPage(bytes.NewReader(body), mode); err != nil {
			return changefeed.Reading{}, err
		}
	}
	return changefeed.Measure(a), nil
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	written := date.Unix() - 34
	page := func(item string) []byte {
		return []byte(`{"_rid":"q0oIALS6YvQ=","Documents":[` + item + `]}`)
	}
	const noAge = -1
	for _, c := range []struct {
		rule        string
		answer      changefeed.Answer
		body        []byte
		mode        changefeed.Mode
		lag, age    int64
		approximate bool
		fails       bool
	}{
		{rule: "304 is nothing pending, whatever the token", answer: changefeed.Answer{Status: 304, SessionToken: "0:-1#99"}, lag: 0, age: noAge},
		{rule: "200 without items does not say that nothing is pending", answer: changefeed.Answer{Status: 200, SessionToken: "0:-1#99"}, body: []byte(`{"Documents":[],"_count":0}`), lag: 1, age: noAge, approximate: true},
		{
			rule:   "from the first item to the session, both included",
			answer: changefeed.Answer{Status: 200, SessionToken: "0:-1#150", Date: date}, body: page(`{"_lsn":124,"_ts":1772625566}`),
			lag: 27, age: 34,
		},
		{
			rule:   "only the first item of a page counts",
			answer: changefeed.Answer{Status: 200, SessionToken: "0:-1#150"}, body: page(`{"_lsn":150},{"_lsn":1}`),
			lag: 1, age: noAge,
		},
		{rule: "the LSN may be text", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`{"_lsn":"149"}`), lag: 2, age: noAge},
		{rule: "the name of the LSN in any case", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`{"_LSN":149}`), lag: 2, age: noAge},
		{rule: "a session behind the item still has that item, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "0:100"}, body: page(`{"_lsn":149}`), lag: 1, age: noAge, approximate: true},
		{rule: "an item without an LSN is one, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`{"id":"x"}`), lag: 1, age: noAge, approximate: true},
		{rule: "an item with LSN 0 is one, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`{"_lsn":0}`), lag: 1, age: noAge, approximate: true},
		{rule: "an item with an LSN that is no number is one, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`{"_lsn":{"a":1}}`), lag: 1, age: noAge, approximate: true},
		{rule: "an item that is no object is one, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "0:150"}, body: page(`7`), lag: 1, age: noAge, approximate: true},
		{rule: "an unreadable session with an item is one, approximately", answer: changefeed.Answer{Status: 200, SessionToken: "x"}, body: page(`{"_lsn":7}`), lag: 1, age: noAge, approximate: true},
		{rule: "no session with an item is one, approximately", answer: changefeed.Answer{Status: 200}, body: page(`{"_lsn":7}`), lag: 1, age: noAge, approximate: true},
		{
			rule:   "an item written after the answer's date is not of negative age",
			answer: changefeed.Answer{Status: 200, SessionToken: "0:7", Date: time.Unix(written, 0)}, body: page(`{"_lsn":7,"_ts":1772625699}`),
			lag: 1, age: 0,
		},
		{rule: "without a date the age is unknown", answer: changefeed.Answer{Status: 200, SessionToken: "0:7"}, body: page(`{"_lsn":7,"_ts":1772625566}`), lag: 1, age: noAge},
		{
			rule: "all versions and deletes: LSN and time from the metadata", mode: changefeed.FullFidelity,
			answer: changefeed.Answer{Status: 200, SessionToken: "0:-1#150", Date: date}, body: page(`{"current":{},"previous":{"_lsn":3},"metadata":{"lsn":148,"crts":1772625566,"operationType":"delete"}}`),
			lag: 3, age: 34,
		},
		{
			rule: "all versions and deletes: without metadata one, approximately", mode: changefeed.FullFidelity,
			answer: changefeed.Answer{Status: 200, SessionToken: "0:-1#150"}, body: page(`{"_lsn":148}`),
			lag: 1, age: noAge, approximate: true,
		},
		{rule: "broken JSON is unknown", answer: changefeed.Answer{Status: 200, SessionToken: "0:7"}, body: []byte(`{"Documents":[`), fails: true, age: noAge},
		{rule: "an empty body is unknown", answer: changefeed.Answer{Status: 200, SessionToken: "0:7"}, fails: true, age: noAge},
		{rule: "a body that is no page is unknown", answer: changefeed.Answer{Status: 200, SessionToken: "0:7"}, body: []byte(`{"error":"proxy"}`), fails: true, age: noAge},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got, err := measure(c.answer, c.body, c.mode)
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			if got.Lag != c.lag || got.Approximate != c.approximate {
				t.Errorf("lag %d, approximate %v; want %d, %v", got.Lag, got.Approximate, c.lag, c.approximate)
			}
			age := int64(noAge)
			if got.Age != nil {
				age = *got.Age
			}
			if age != c.age {
				t.Errorf("age %d, want %d", age, c.age)
			}
		})
	}
}
