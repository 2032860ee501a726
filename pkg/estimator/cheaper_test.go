package estimator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// many is processors of one container with documents of 10 KB.
type many struct {
	*world
	partitions int
	processors []estimator.Processor
	leases     []leasefake.Processor
	newest     []int64 // LSN of each partition
	keys       []string
}

const manyPartitions = 4

func newMany(w *world, n int) *many {
	m := &many{world: w, partitions: manyPartitions, newest: make([]int64, manyPartitions), keys: make([]string, manyPartitions)}
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/key"}, Partitions: manyPartitions})
	m.findKeys()
	m.write(100)
	for i := range n {
		p := w.processor("orders")
		p.ProcessorName = fmt.Sprintf("projection-%03d-", i)
		m.processors, m.leases = append(m.processors, p), append(m.leases, w.leasesOf(p))
	}
	return m
}

// findKeys finds a partition key of each partition: the one whose document moves its newest LSN.
func (m *many) findKeys() {
	m.t.Helper()
	found := 0
	for i := 0; found < m.partitions; i++ {
		key := fmt.Sprint("key-", i)
		m.Put("orders", map[string]any{"id": "first", "key": key})
		for p := range m.partitions {
			if lsn := m.session(p); lsn != m.newest[p] {
				m.newest[p] = lsn
				if m.keys[p] == "" {
					m.keys[p] = key
					found++
				}
			}
		}
	}
}

// session is the newest LSN of a partition, as a read from now says it.
func (m *many) session(partition int) int64 {
	m.t.Helper()
	answer, _, err := m.account.FeedPage(m.t.Context(), m.processor("orders").Container, changefeed.Position{Range: fmt.Sprint(partition), Continuation: "*"})
	testworld.Must(m.t, err)
	lsn, _ := changefeed.SessionLSN(answer.SessionToken)
	return lsn
}

// write writes n documents to each partition.
func (m *many) write(n int) {
	m.t.Helper()
	text := strings.Repeat("x", 10<<10-200)
	for p, key := range m.keys {
		for range n {
			m.newest[p]++
			m.Put("orders", map[string]any{"id": fmt.Sprint("document-", m.newest[p]), "key": key, "text": text})
		}
	}
}

// checkpoint puts every lease of a processor so many LSNs behind.
func (m *many) checkpoint(processor int, behind int64) {
	m.t.Helper()
	for p, lsn := range m.newest {
		m.Put(testworld.Leases, m.leases[processor].DotNetPKOld(fmt.Sprint(p), testworld.At(lsn-behind)))
	}
}

// cost is what a tick asks the account for.
type cost struct {
	requests int
	charge   float64
}

// tick measures all, by a last poll or without one, in which case every position is read.
func (m *many) tick(e *estimator.Estimator, remember bool) cost {
	m.t.Helper()
	processors := m.processors
	if !remember {
		processors = append([]estimator.Processor(nil), m.processors...)
		for i := range processors {
			processors[i].Last = nil
		}
	}
	before := m.Account.Requests()
	lags := e.EstimateAll(m.t.Context(), processors)
	after := m.Account.Requests()
	c := cost{charge: after.Charge - before.Charge}
	for kind, n := range after.Requests {
		c.requests += n - before.Requests[kind]
	}
	for i, l := range lags {
		if !l.Complete() {
			m.t.Fatal(l.Problem())
		}
		if remember {
			m.processors[i].Last = func() changefeed.ProcessorLag { return l }
		}
	}
	return c
}

func TestPositionsThatStandStillCostLittle(t *testing.T) { standingStillCostsLittle(t, 1, 10) }

func TestPositionsThatStandStillCostLittle_Long(t *testing.T) { standingStillCostsLittle(t, 100) }

// standingStillCostsLittle counts what a tick asks for, beside one that reads every position
// (docs/decisions/0008): n processors of one container of 4 partitions, whose oldest pending change is a
// document of 10 KB.
func standingStillCostsLittle(t *testing.T, processors ...int) {
	t.Helper()
	t.Parallel()
	for _, n := range processors {
		t.Run(fmt.Sprint(n, " processors"), func(t *testing.T) {
			t.Parallel()
			m := newMany(newWorld(t), n)
			apart := func() {
				for i := range m.processors {
					m.checkpoint(i, int64(1+i%100))
				}
			}
			caughtUp := func() {
				for i := range m.processors {
					m.checkpoint(i, 0)
				}
			}
			for _, c := range []struct {
				rule  string
				first func() // before the first tick
				then  func() // before each
				reads int    // of the change feed, at most
			}{
				{"caught up, nothing is written", caughtUp, func() {}, manyPartitions},
				{"caught up, changes are written", func() {}, func() { m.write(1); caughtUp() }, manyPartitions},
				{"behind, each at a position of its own, nothing moves", apart, func() {}, manyPartitions * n},
				{"the same, changes are written", apart, func() { m.write(1) }, manyPartitions * n},
				{"the same, and positions move", apart, func() { m.write(1); apart() }, manyPartitions * n},
			} {
				e := estimator.New(16, time.Now)
				var got cost
				c.first()
				for range 3 { // what has not moved since the tick before is known from the third on
					c.then()
					got = m.tick(e, true)
				}
				every := m.tick(e, false)
				if reads := got.requests - (1 + manyPartitions*n/1000); reads > c.reads { // and the pages of the lease query
					t.Errorf("%s: %d reads of the change feed, want at most %d", c.rule, reads, c.reads)
				}
				if got.charge > every.charge+0.01 {
					t.Errorf("%s: %.0f RU, where reading every position costs %.0f", c.rule, got.charge, every.charge)
				}
				t.Logf("| %d | %s | %d, %.0f RU | %d, %.0f RU |", n, c.rule, every.requests, every.charge, got.requests, got.charge)
			}
		})
	}
}
