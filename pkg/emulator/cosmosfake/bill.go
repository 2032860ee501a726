package cosmosfake

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Hour is what one hour of a container's, or a database's, throughput is billed for.
type Hour struct {
	Start       time.Time // the full hour, UTC
	RUPerSecond int
}

// ledger records what was provisioned and, with autoscale, what was used.
type ledger struct {
	mu      sync.Mutex
	changes []provision // by time
	peaks   map[time.Time]float64
}

// provision is what was provisioned from a time on.
type provision struct {
	since     time.Time
	limit     int
	autoscale bool
}

func newLedger(now time.Time, o *offer) *ledger {
	l := &ledger{peaks: map[time.Time]float64{}}
	l.change(now, o)
	return l
}

// change records a new offer. A pending one is billed from the request on; this is an assumption.
func (l *ledger) change(now time.Time, o *offer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, provision{now, o.limit(), o.Maximum > 0})
}

// use records how many request units were used in one second.
func (l *ledger) use(now time.Time, used float64) {
	hour := fullHour(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peaks[hour] = max(l.peaks[hour], used)
}

func fullHour(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }

// bill lists the hours until now: "you're billed for the highest RU/s provisioned in each hour",
// and of autoscaled throughput for the highest that it scaled to, a tenth of its maximum at least
// (https://learn.microsoft.com/azure/cosmos-db/understand-your-bill,
// https://learn.microsoft.com/azure/cosmos-db/autoscale-faq).
func (l *ledger) bill(now time.Time) []Hour {
	l.mu.Lock()
	defer l.mu.Unlock()
	var hours []Hour
	for hour := fullHour(l.changes[0].since); !hour.After(now); hour = hour.Add(time.Hour) {
		most := 0
		for i, p := range l.changes {
			began := p.since.Before(hour.Add(time.Hour))
			ended := i+1 < len(l.changes) && !l.changes[i+1].since.After(hour)
			if began && !ended {
				most = max(most, p.billed(l.peaks[hour]))
			}
		}
		hours = append(hours, Hour{hour, most})
	}
	return slices.Clip(hours)
}

// billed returns what one hour is billed for, given the highest use in a second.
func (p provision) billed(peak float64) int {
	if !p.autoscale {
		return p.limit
	}
	return min(max(p.limit/10, int(math.Ceil(peak))), p.limit)
}

// Bill lists what each hour of a container's throughput is billed for, or of a database's where
// coll is "", from the hour in which it was created until now. It is an error if there is none of
// its own.
func (s *Server) Bill(db, coll string) ([]Hour, error) {
	var of provisioner
	if d, ok := s.databases.find(db); ok && coll == "" {
		of = d
	} else {
		c, err := s.container(db, coll)
		if err != nil {
			return nil, err
		}
		of = c
	}
	o := of.provisioned().Load()
	if o == nil {
		return nil, fmt.Errorf("%s/%s has no throughput of its own", db, coll)
	}
	return o.ledger.bill(s.now()), nil
}
