package changefeedprocessor

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestAHostTakesItsShare(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const expiration = time.Minute
	cases := []struct {
		name   string
		owners []string // of leases 0, 1, ...: "" is nobody, and a name with a ! has not renewed in time
		want   []string // taken by host a
	}{
		{"nothing where there are no leases", nil, nil},
		{"everything where it is alone", []string{"", "", ""}, []string{"0", "1", "2"}},
		{"what an owner that died has not renewed", []string{"b!", "b!"}, []string{"0", "1"}},
		{"what itself has not renewed in time", []string{"a!", "a"}, []string{"0"}},
		{"half of the free leases beside another host", []string{"b", "", "", ""}, []string{"1", "2"}},
		{"the share rounded up", []string{"b", "b", "", "", ""}, []string{"2", "3", "4"}},
		{"nothing where it has its share", []string{"a", "a", "b", ""}, nil},
		{"one lease of the host that has most, where none is free", []string{"b", "c", "c", "c", "b", "c"}, []string{"1"}},
		{"nothing from a host that has no more than its share", []string{"b", "c"}, nil},
		{"nothing where that would only turn the tables", []string{"a", "b", "b"}, nil},
		{"one where another host has two more", []string{"a", "b", "b", "b"}, []string{"1"}},
		{"one at a time of a host that has everything", []string{"b", "b", "b", "b"}, []string{"0"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := make([]*changefeed.Record, len(c.owners))
			for i, owner := range c.owners {
				all[i] = &changefeed.Record{Lease: changefeed.Lease{Token: strconv.Itoa(i), Owner: owner, Time: now}}
				if n := len(owner) - 1; n > 0 && owner[n] == '!' {
					all[i].Owner, all[i].Time = owner[:n], now.Add(-expiration-time.Millisecond)
				}
			}
			var got []string
			wanted, stealing := share("a", all, now, expiration)
			if stealing {
				wanted = wanted[:min(1, len(wanted))]
			}
			for _, l := range wanted {
				got = append(got, l.Token)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
