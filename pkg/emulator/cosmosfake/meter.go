package cosmosfake

import (
	"math"
	"sync/atomic"
)

// Counts tells what an account was asked for since it started.
type Counts struct {
	Requests map[Kind]int // by kind; kinds never asked for are absent
	Charge   float64      // request units of all answers
}

// meter counts without a lock.
type meter struct {
	requests map[Kind]*atomic.Int64
	charge   *atomic.Int64 // hundredths of a request unit
}

func newMeter() meter {
	m := meter{requests: map[Kind]*atomic.Int64{}, charge: new(atomic.Int64)}
	for _, k := range Kinds() {
		m.requests[k] = new(atomic.Int64)
	}
	return m
}

func (m meter) count(k Kind)        { m.requests[k].Add(1) }
func (m meter) bill(charge float64) { m.charge.Add(int64(math.Round(charge * 100))) }

// Requests returns what the account was asked for so far, by all clients together.
func (s *Server) Requests() Counts {
	c := Counts{Requests: map[Kind]int{}, Charge: float64(s.meter.charge.Load()) / 100}
	for k, n := range s.meter.requests {
		if n := n.Load(); n > 0 {
			c.Requests[k] = int(n)
		}
	}
	return c
}
