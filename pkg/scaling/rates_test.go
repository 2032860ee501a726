package scaling_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// reading is what a poll finds of one partition.
type reading struct {
	session, checkpoint int64 // LSNs, whose difference is the lag; 0 is none
	owner               string
	renewed             time.Duration // ago
}

// unread is a partition that could not be measured.
var unread = reading{session: -1}

// readings is a measurement of these partitions, and of idle ones up to 20.
func readings(at time.Time, partitions []reading) changefeed.ProcessorLag {
	l := changefeed.ProcessorLag{Time: at}
	for i := range 20 {
		p := changefeed.Partition{Lease: fmt.Sprint(i), Status: changefeed.StatusOK, Lag: new(int64)}
		if i < len(partitions) {
			r := partitions[i]
			p.Owner, p.LeaseTime = r.owner, at.Add(-r.renewed)
			p.SessionLSN, p.CheckpointLSN, p.Position = &r.session, &r.checkpoint, fmt.Sprint(r.checkpoint)
			*p.Lag = r.session - r.checkpoint
			switch {
			case r == unread:
				p.Lag, p.SessionLSN, p.CheckpointLSN = nil, nil, nil
				p.Status, p.Error = changefeed.StatusUnknown, "the account could not answer"
			case *p.Lag > 0:
				p.Status = changefeed.StatusLagging
			}
		}
		l.Partitions = append(l.Partitions, p)
	}
	return l
}

// TestMaxChangeAge is step 4: 20 partitions, one of them with changes pending, and a limit of 5
// minutes.
func TestMaxChangeAge(t *testing.T) {
	t.Parallel()
	owners := func(n int, renewed time.Duration) []reading {
		found := []reading{{1000, 999, "worker-0", renewed}}
		for i := 1; i < n; i++ {
			found = append(found, reading{1000, 1000, fmt.Sprint("worker-", i), renewed})
		}
		return found
	}
	for _, c := range []struct {
		rule   string
		change func(*scaling.Policy)
		found  []reading
		age    int64 // seconds
		want   string
	}{
		{"an age within the limit asks for nothing", nil, owners(4, 0), 300, "1 active 1 out [threshold=1]"},
		{"nor does one within 10 percent of it", nil, owners(4, 0), 330, "1 active 1 out [threshold=1]"},
		{"beyond, the ratio counts: 4 x 331 / 300", nil, owners(4, 0), 331, "5 active 1 out [threshold=1 maxChangeAge=5]"},
		{"twice the limit asks for twice the owners", nil, owners(4, 0), 600, "8 active 1 out [threshold=1 maxChangeAge=8]"},
		{"an exact product is not rounded up: 15 x 620 / 300", nil, owners(15, 0), 620, "20 active 1 out [threshold=1 maxChangeAge=31 clamp=20]"},
		{"owners that are gone do not count, but at least one does", nil, owners(4, 61*time.Second), 600, "2 active 1 out [threshold=1 maxChangeAge=2]"},
		{"nor does it need any", nil, []reading{{1000, 999, "", 0}}, 900, "3 active 1 out [threshold=1 maxChangeAge=3]"},
		{"an owner counts once", nil, []reading{{1000, 999, "a", 0}, {1000, 1000, "a", 0}}, 600, "2 active 1 out [threshold=1 maxChangeAge=2]"},
		{
			"it never lowers what the threshold asks for", func(p *scaling.Policy) { p.Threshold = 1 },
			[]reading{{1000, 990, "a", 0}}, 600, "10 active 10 out [threshold=10]",
		},
		{
			"an inactive processor may be late", func(p *scaling.Policy) { p.Activation = 1 },
			owners(4, 0), 86400, "0 inactive 1 none [activation=0]",
		},
		{
			"without maxChangeAge there is none of it", func(p *scaling.Policy) { p.MaxChangeAge = 0 },
			owners(4, 0), 86400, "1 active 1 out [threshold=1]",
		},
		{
			"the age of a known partition counts beside an unknown one", nil,
			[]reading{{1000, 999, "a", 0}, unread}, 600, "2 active 1 out [threshold=1 maxChangeAge=2]",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := unlimited()
			p.MaxChangeAge = 5 * time.Minute
			if c.change != nil {
				c.change(&p)
			}
			lag := readings(start, c.found)
			lag.Partitions[0].Age = &c.age
			got := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: p})
			if got := describe(got.Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		rule      string
		retention time.Duration // as the estimator found it
		limit     time.Duration // maxChangeAge
		age       int64
		want      string
	}{
		{"half of the retention, and 10 percent, ask for nothing", 10 * time.Minute, 0, 330, "1 active 1 out [threshold=1]"},
		{"beyond, the ratio counts, as with maxChangeAge: 4 x 331 / 300", 10 * time.Minute, 0, 331, "5 active 1 out [threshold=1 retention=5]"},
		{"the smaller limit asks for more: maxChangeAge", time.Hour, 5 * time.Minute, 600, "8 active 1 out [threshold=1 maxChangeAge=8]"},
		{"the smaller limit asks for more: the retention", 5 * time.Minute, 5 * time.Minute, 600, "16 active 1 out [threshold=1 maxChangeAge=8 retention=16]"},
		{"for ever is no limit", 0, 0, 1e9, "1 active 1 out [threshold=1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := unlimited()
			p.MaxChangeAge = c.limit
			lag := readings(start, owners(4, 0))
			lag.Retention, lag.Partitions[0].Age = c.retention, &c.age
			got := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: p})
			if got := describe(got.Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("an unknown age asks for nothing", func(t *testing.T) {
		t.Parallel()
		p := unlimited()
		p.MaxChangeAge = 5 * time.Minute
		got := scaling.Decide(scaling.Input{Now: start, Lag: readings(start, owners(4, 0)), Policy: p})
		if got, want := describe(got.Decision), "1 active 1 out [threshold=1]"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
