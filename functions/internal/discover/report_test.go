package discover

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

func TestTheOwnersAndRenewalsOfAProcessorAreSummedUp(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	lease := func(owner string, ago time.Duration) changefeed.LeaseDocument {
		l := changefeed.Lease{ID: "p..0", Owner: owner}
		if ago > 0 {
			l.Time = now.Add(-ago)
		}
		return changefeed.LeaseDocument{Lease: l}
	}
	broken := lease("c", time.Second)
	broken.Err = errors.New("it has neither LeaseToken nor PartitionId")
	var p Processor
	p.sumUp([]changefeed.LeaseDocument{
		lease("b", 2*time.Minute), lease("a", 30*time.Second), lease("b", 61*time.Second), lease("", 9*time.Minute), lease("", 0), lease("d", 0), broken,
	}, now)
	var owners []string
	for _, o := range p.Owners {
		renewed := int64(-1)
		if o.RenewedSeconds != nil {
			renewed = *o.RenewedSeconds
		}
		owners = append(owners, fmt.Sprintf("%s has %d, renewed %d s ago, live %v", o.Name, o.Partitions, renewed, o.Live))
	}
	want := []string{"a has 1, renewed 30 s ago, live true", "b has 2, renewed 61 s ago, live false", "d has 1, renewed -1 s ago, live false"}
	if !slices.Equal(owners, want) {
		t.Errorf("owners %q, want %q", owners, want)
	}
	if *p.NewestSeconds != 30 || *p.OldestSeconds != 540 {
		t.Errorf("renewed from %d to %d s ago", *p.OldestSeconds, *p.NewestSeconds)
	}
	if len(p.Unreadable) != 1 || p.Unreadable[0].Lease != "p..0" {
		t.Errorf("unreadable: %+v", p.Unreadable)
	}
}

func TestTheFormatsAndModesOfAProcessorAreThoseOfTheLeasesThatCanBeRead(t *testing.T) {
	t.Parallel()
	lease := func(token, fields string) changefeed.LeaseDocument {
		l, err := changefeed.ParseLease([]byte(`{"id":"acct_q0oIAA==_q0oIALS6YvQ=..` + token + `","LeaseToken":"` + token + `",` + fields + `}`))
		return changefeed.LeaseDocument{Lease: l, Err: err}
	}
	var p Processor
	p.sumUp([]changefeed.LeaseDocument{
		lease("0", `"Owner":"b"`),
		lease("1", `"Mode":"Full-Fidelity Feed"`),
		lease("4", `"ContinuationToken":7,"version":1,"feedRange":{}`),
		lease("-FF", `"version":1`),
	}, time.Now())
	if want := []changefeed.Format{changefeed.FormatDotNetEPK, changefeed.FormatDotNetPK}; !slices.Equal(p.Formats, want) {
		t.Errorf("formats %q, want %q", p.Formats, want)
	}
	if want := []string{"all versions and deletes", "incremental"}; !slices.Equal(p.Modes, want) {
		t.Errorf("modes %q, want %q", p.Modes, want)
	}
}
