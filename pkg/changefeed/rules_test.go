package changefeed_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// The cases of this file are rules of docs/lag.md that no other test has.

func TestWhatALeaseMayLeaveOut(t *testing.T) {
	t.Parallel()
	const rid = "q0oIALS6YvQ="
	for _, c := range []struct {
		row, document string
		want          changefeed.Lease
	}{
		{
			"without FeedRange, Mode and partitionKey, as older leases are",
			`{"id":"p..0","version":0,"LeaseToken":"0","Owner":"host1","ContinuationToken":"\"511\"","properties":{}}`,
			changefeed.Lease{Token: "0", Owner: "host1", Continuation: `"511"`},
		},
		{
			"V2 says PartitionId, and has no version",
			`{"id":"p..0","gremlincompatid":"p..0","PartitionId":"0","Owner":"h","ContinuationToken":"\"511\"","properties":{}}`,
			changefeed.Lease{Token: "0", Owner: "h", Continuation: `"511"`},
		},
		{
			"a version that is null is none",
			`{"id":"p..0","version":null,"LeaseToken":"0","ContinuationToken":"\"511\""}`,
			changefeed.Lease{Token: "0", Continuation: `"511"`},
		},
		{
			"continuation: without quotes it is opaque as well",
			`{"id":"p..0","LeaseToken":"0","ContinuationToken":"511"}`,
			changefeed.Lease{Token: "0", Continuation: "511"},
		},
		{
			"continuation: an unknown Mode is incremental",
			`{"id":"p..0","LeaseToken":"0","Mode":"Some Other Feed"}`,
			changefeed.Lease{Token: "0"},
		},
		{
			"continuation: the empty text is none",
			`{"id":"p..0","LeaseToken":"0","ContinuationToken":""}`,
			changefeed.Lease{Token: "0"},
		},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			got, err := changefeed.ParseLease([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			if got.Token != c.want.Token || got.Owner != c.want.Owner || got.Continuation != c.want.Continuation || got.Mode != c.want.Mode || got.Range != nil {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("the range of an EPK lease counts, not its token", func(t *testing.T) {
		t.Parallel()
		got, err := changefeed.ParseLease([]byte(`{"id":"p..x","version":1,"LeaseToken":"x","FeedRange":{"Range":{"min":"1F","max":"3F"}}}`))
		if err != nil || got.Range == nil || *got.Range != (changefeed.Range{Min: "1F", Max: "3F"}) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("the id of a database is the first four bytes of a container's", func(t *testing.T) {
		t.Parallel()
		if got, err := changefeed.DatabaseRID(rid); err != nil || got != "q0oIAA==" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestTheArithmeticOfTheLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row, session, item string
		want               int64
		approximate        bool
	}{
		{"S - (L - 1), where both are plain", "0:-1#100", `{"_lsn":95}`, 6, false},
		{"the newest change alone is one", "0:-1#100", `{"_lsn":100}`, 1, false},
		{"_lsn is a number or text, in any case", "0:-1#100", `{"_Lsn":"95"}`, 6, false},
		{"an _lsn that is null is missing", "0:-1#100", `{"_lsn":null}`, 1, true},
		{"an _lsn with an exponent is none", "0:-1#100", `{"_lsn":9.5e1}`, 1, true},
		{"text with a fraction is none", "0:-1#100", `{"_lsn":"95.5"}`, 1, true},
		{"a session of nothing but '#'", "0:#", `{"_lsn":95}`, 1, true},
		{"0:123", "0:123", `{"_lsn":123}`, 1, false},
		{"0:-1#123", "0:-1#123", `{"_lsn":121}`, 3, false},
		{"0:-1#123#Region=", "0:-1#123#Region=", `{"_lsn":121}`, 3, false},
		{"a session behind the item", "0:-1#10", `{"_lsn":95}`, 1, true},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			got, err := measure(changefeed.Answer{Status: 200, SessionToken: c.session}, fmt.Appendf(nil, `{"Documents":[%s]}`, c.item), changefeed.Incremental)
			if err != nil {
				t.Fatal(err)
			}
			if got.Lag != c.want || got.Approximate != c.approximate {
				t.Errorf("lag %d, approximate %v; want %d, %v", got.Lag, got.Approximate, c.want, c.approximate)
			}
		})
	}
}

func TestAProcessorIsTheSumOfItsPartitions(t *testing.T) {
	t.Parallel()
	at := func(lag int64, status changefeed.Status) changefeed.Partition {
		return changefeed.Partition{Lag: &lag, Status: status}
	}
	unknown := changefeed.Partition{Status: changefeed.StatusUnknown, Error: "refused"}
	holes := changefeed.Coverage{Holes: []changefeed.Range{{Min: "40", Max: "80"}, {Min: "C0", Max: "FF"}}}
	for _, c := range []struct {
		row      string
		lag      changefeed.ProcessorLag
		want     int64 // -1 = null
		status   changefeed.Status
		complete bool
	}{
		{"the sum of the known partitions", changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(3, changefeed.StatusLagging), unknown, at(4, changefeed.StatusLagging)}}, 7, changefeed.StatusUnknown, false},
		{"null where none is known", changefeed.ProcessorLag{Partitions: []changefeed.Partition{unknown}}, -1, changefeed.StatusUnknown, false},
		{"null where the leases could not be read", changefeed.ProcessorLag{Error: "refused"}, -1, changefeed.StatusUnknown, false},
		{"no lease is 1", changefeed.ProcessorLag{Bootstrap: true}, 1, changefeed.StatusBootstrap, true},
		{"zero is known", changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(0, changefeed.StatusOK)}}, 0, changefeed.StatusOK, true},
		{"1 for all uncovered keys", changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(3, changefeed.StatusLagging)}, Coverage: holes}, 4, changefeed.StatusUncovered, true},
		{"which is the 1 of an uncheckpointed partition, too", changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(0, changefeed.StatusUncheckpointed)}, Coverage: holes}, 1, changefeed.StatusUncovered, true},
		{"uncovered keys alone are not known", changefeed.ProcessorLag{Partitions: []changefeed.Partition{unknown}, Coverage: holes}, -1, changefeed.StatusUnknown, false},
		{"no lease is 1, whatever was uncovered", changefeed.ProcessorLag{Bootstrap: true, Coverage: holes}, 1, changefeed.StatusBootstrap, true},
		{"a sum never wraps around to nothing", changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(math.MaxInt64, changefeed.StatusLagging), at(5, changefeed.StatusLagging)}}, math.MaxInt64, changefeed.StatusLagging, true},
	} {
		t.Run(c.row, func(t *testing.T) {
			t.Parallel()
			got := int64(-1)
			if lag := c.lag.Lag(); lag != nil {
				got = *lag
			}
			if got != c.want || c.lag.Status() != c.status || c.lag.Complete() != c.complete {
				t.Errorf("lag %d, %s, complete %v; want %d, %s, %v", got, c.lag.Status(), c.lag.Complete(), c.want, c.status, c.complete)
			}
		})
	}
	t.Run("the worst status of the partitions, worst first", func(t *testing.T) {
		t.Parallel()
		order := []changefeed.Status{"unknown", "stalled", "expiring", "ahead", "uncovered", "bootstrap", "splitting", "unclaimed", "uncheckpointed", "lagging", "ok"}
		for i, worse := range order {
			for _, better := range order[i:] {
				l := changefeed.ProcessorLag{Partitions: []changefeed.Partition{at(1, better), at(1, worse)}}
				if got := l.Status(); got != worse {
					t.Errorf("%s and %s are %s", better, worse, got)
				}
			}
		}
	})
	t.Run("the age is the maximum", func(t *testing.T) {
		t.Parallel()
		young, old := int64(3), int64(40)
		l := changefeed.ProcessorLag{Time: time.Unix(0, 0), Partitions: []changefeed.Partition{{Age: &young}, {}, {Age: &old}}}
		if got := l.Age(); got == nil || *got != old {
			t.Errorf("age %v, want %d", got, old)
		}
	})
}
