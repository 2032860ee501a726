package estimator_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// seedVariable names the environment variable with a seed to run again.
const seedVariable = "FEEDSCALE_TEST_SEED"

// TestWhateverHappensTheLagIsThatOfThePlainModel_Long lets writers, splits, merges and processors of
// every SDK act at random on one account, and holds what the estimator says after each step against
// the model.
func TestWhateverHappensTheLagIsThatOfThePlainModel_Long(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, uint64(time.Now().UnixNano())}
	if text, ok := os.LookupEnv(seedVariable); ok {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, seed)
			for range 1000 {
				s.step()
				if t.Failed() {
					t.Fatalf("run it again with %s=%d; the last steps were:\n%s", seedVariable, seed, strings.Join(s.log[max(0, len(s.log)-12):], "\n"))
				}
			}
		})
	}
}

// simulation is an account on which everything happens at random.
type simulation struct {
	*world
	random     *rand.Rand
	clock      *testworld.Clock // stands still within a step
	steps      int
	estimator  *estimator.Estimator
	containers []*simulatedContainer
	log        []string
}

type simulatedContainer struct {
	id         string
	model      *model
	processors []*simulated
	documents  map[string]string // key by id
	written    int
	splits     []func() []string // under way
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	s := &simulation{random: rand.New(rand.NewPCG(seed, 0)), clock: testworld.NewClock(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))}
	s.world = newWorldOf(t, cosmosfake.Options{Now: s.clock.Now, Token: func(string) error { return nil }})
	s.estimator = estimator.New(16, s.clock.Now)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for i := range 2 {
		c := &simulatedContainer{id: fmt.Sprintf("orders-%d", i), documents: make(map[string]string)}
		testworld.Must(s.t, s.Account.CreateContainer(database, cosmosfake.ContainerSpec{ID: c.id, PartitionKey: []string{"/key"}, Partitions: i + 1}))
		c.model = &model{t: t, endpoint: s.Account.Endpoint(), http: &http.Client{Transport: transport}, container: c.id}
		c.model.reshaped()
		for j, f := range flavours() {
			p := s.processor(c.id)
			p.ProcessorName = fmt.Sprintf("flavour-%d", j)
			p.StartFrom.Beginning = s.random.IntN(2) == 0
			c.processors = append(c.processors, &simulated{flavour: f, processor: p, writer: s.leasesOf(p)})
		}
		s.containers = append(s.containers, c)
	}
	return s
}

// step lets one thing happen, and checks a processor that it concerns, or now and then all at once.
func (s *simulation) step() {
	s.t.Helper()
	s.clock.Advance(time.Duration(s.random.IntN(3)) * time.Second)
	c := pick(s.random, s.containers)
	p := pick(s.random, c.processors)
	switch n := s.random.IntN(100); {
	case n < 30:
		s.write(c)
	case n < 37:
		s.remove(c)
	case n < 66:
		s.work(c, p)
	case n < 86:
		s.repair(c, p)
	case n < 91:
		s.split(c)
	case n < 94:
		s.merge(c)
	case n < 97:
		s.finishSplit(c)
	case n < 99:
		s.start(c, p)
	default:
		s.note(c, "%s loses its leases", p.name)
		for len(p.leases) > 0 {
			s.drop(p, p.leases[0])
		}
	}
	if s.steps++; s.steps%50 == 0 {
		var all []*simulated
		for _, c := range s.containers {
			all = append(all, c.processors...)
		}
		s.check(s.estimator, all)
		return
	}
	e := s.estimator
	if s.random.IntN(10) == 0 {
		e = estimator.New(16, s.clock.Now) // one that remembers nothing
	}
	s.check(e, []*simulated{p})
}

func pick[T any](random *rand.Rand, of []T) T { return of[random.IntN(len(of))] }

func (s *simulation) note(c *simulatedContainer, format string, values ...any) {
	s.log = append(s.log, fmt.Sprintf("%4d %s: ", len(s.log), c.id)+fmt.Sprintf(format, values...))
}

// write writes one document or a batch of one key, new ones or the same again.
func (s *simulation) write(c *simulatedContainer) {
	key := fmt.Sprint("key-", s.random.IntN(20))
	var batch []cosmosfake.Operation
	for range 1 + s.random.IntN(2)*s.random.IntN(3) {
		id := fmt.Sprintf("%s-%d", key, s.random.IntN(2))
		c.documents[id] = key
		c.written++
		batch = append(batch, cosmosfake.Put(map[string]any{"id": id, "key": key, "n": c.written}))
	}
	s.note(c, "%d documents of %s are written", len(batch), key)
	testworld.Must(s.t, s.Account.Batch(database, c.id, batch...))
	c.model.written()
}

func (s *simulation) remove(c *simulatedContainer) {
	if len(c.documents) == 0 {
		return
	}
	ids := make([]string, 0, len(c.documents))
	for id := range c.documents {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := pick(s.random, ids)
	s.note(c, "document %s is deleted", id)
	testworld.Must(s.t, s.Account.Delete(database, c.id, id, c.documents[id]))
	delete(c.documents, id)
	c.model.written()
}

// work lets a processor read from a lease and checkpoint, or go back.
func (s *simulation) work(c *simulatedContainer, p *simulated) {
	if len(p.leases) == 0 {
		s.start(c, p)
		return
	}
	l := pick(s.random, p.leases)
	at := c.model.claim(p, l)
	if !at.alive || at.parts[0].splitting() {
		return
	}
	of, keys := at.parts[0].shard, at.parts[0].keys
	if l.position == unset {
		_, _, session := c.model.page(of, keys, 0, 1)
		l.position = session
		if p.processor.StartFrom.Beginning {
			l.position = 0
		}
	}
	switch s.random.IntN(6) {
	case 0:
		l.position = s.random.Int64N(l.position + 1)
	case 1:
		_, _, l.position = c.model.page(of, keys, l.position, 1)
	default:
		_, l.position, _ = c.model.page(of, keys, l.position, 1+s.random.IntN(5))
	}
	s.note(c, "%s is at %d in lease %s", p.name, l.position, l.token)
	s.save(p, l)
}

// repair replaces a lease whose range is gone as the SDK does: the new leases first, then the old
// one is deleted; a crash may come between any two of these.
func (s *simulation) repair(c *simulatedContainer, p *simulated) {
	for _, l := range slices.Clone(p.leases) {
		if c.model.claim(p, l).alive {
			continue
		}
		for _, r := range p.replacements(l, c.model) {
			if p.find(r.token) != nil {
				continue
			}
			s.note(c, "%s adds lease %s for %s at %d", p.name, r.token, l.token, r.position)
			p.leases = append(p.leases, r)
			s.save(p, r)
			if s.random.IntN(3) == 0 {
				return
			}
		}
		s.note(c, "%s deletes lease %s", p.name, l.token)
		s.drop(p, l)
		return
	}
}

func (s *simulation) split(c *simulatedContainer) {
	if len(c.model.shards) > 2 {
		return
	}
	parent := pick(s.random, c.model.shards)
	if parent.splitting() {
		return
	}
	finish, err := s.Account.StartSplit(database, c.id, parent.ID)
	testworld.Must(s.t, err)
	c.splits = append(c.splits, finish)
	s.note(c, "range %s is being split", parent.ID)
	c.model.reshaped()
	if s.random.IntN(3) > 0 {
		s.finishSplit(c)
	}
}

func (s *simulation) finishSplit(c *simulatedContainer) {
	for _, finish := range c.splits {
		s.note(c, "a split is done: %q", finish())
	}
	if c.splits != nil {
		c.splits = nil
		c.model.reshaped()
	}
}

func (s *simulation) merge(c *simulatedContainer) {
	i := s.random.IntN(len(c.model.shards))
	if i == 0 || c.model.shards[i-1].splitting() || c.model.shards[i].splitting() {
		return
	}
	a, b := c.model.shards[i-1].ID, c.model.shards[i].ID
	child, err := s.Account.Merge(database, c.id, a, b)
	testworld.Must(s.t, err)
	s.note(c, "ranges %s and %s are merged to %s", a, b, child)
	c.model.reshaped()
}

// start lets a processor that has no leases make them.
func (s *simulation) start(c *simulatedContainer, p *simulated) {
	if len(p.leases) > 0 {
		return
	}
	s.note(c, "%s starts", p.name)
	for _, r := range c.model.shards {
		l := p.newLease(r, unset)
		p.leases = append(p.leases, l)
		s.save(p, l)
	}
	s.put(leasefake.Info(p.writer.DotNetPrefix()))
	s.put(leasefake.Info(p.writer.JavaPKPrefix()))
}

func (s *simulation) save(p *simulated, l *lease) {
	s.t.Helper()
	l.renewed = s.clock.Now()
	s.put(p.document(l))
}

func (s *simulation) drop(p *simulated, l *lease) {
	s.t.Helper()
	p.leases = slices.DeleteFunc(p.leases, func(o *lease) bool { return o == l })
	id := p.document(l)["id"].(string)
	testworld.Must(s.t, s.Account.Delete(database, testworld.Leases, id, id))
}

func (s *simulation) check(e *estimator.Estimator, simulated []*simulated) {
	s.t.Helper()
	var processors []estimator.Processor
	for _, p := range simulated {
		processors = append(processors, p.processor)
	}
	for i, l := range e.EstimateAll(s.t.Context(), processors) {
		s.compare(simulated[i], l)
	}
}

func (s *simulation) compare(p *simulated, l changefeed.ProcessorLag) {
	s.t.Helper()
	if len(p.leases) == 0 {
		if !l.Bootstrap {
			s.t.Errorf("%s has no leases, but: %s", p.name, describe(l))
		}
		return
	}
	if l.Error != "" || slices.ContainsFunc(l.Partitions, func(p changefeed.Partition) bool { return p.Lag == nil }) {
		s.t.Errorf("%s: %s", p.name, l.Problem())
		return
	}
	var m *model
	for _, c := range s.containers {
		if (cosmos.Container{Database: database, ID: c.id}) == p.processor.Container {
			m = c.model
		}
	}
	if holes := l.Coverage.Holes; len(holes) > 0 { // nil where the ranges are older than the leases
		s.t.Errorf("%s: a hole was invented: %v", p.name, holes)
	}
	expected := m.expect(p, s.clock.Now())
	sums, most := make(map[string]int64), make(map[string]int64)
	for _, got := range l.Partitions {
		want, ok := expected[got.Lease]
		delete(expected, got.Lease)
		lag := *got.Lag
		switch {
		case !ok:
			s.t.Errorf("%s: lease %s counts, with %d, though others have all of it", p.name, got.Lease, lag)
		case (got.Error != "") != want.unreadable:
			s.t.Errorf("%s: lease %s has the error %q, want one: %t", p.name, got.Lease, got.Error, want.unreadable)
		case got.Status != want.status:
			s.t.Errorf("%s: lease %s is %s, want %s", p.name, got.Lease, got.Status, want.status)
		case want.sub == "" && lag != want.lag, lag < min(1, want.lag), lag > want.lag:
			s.t.Errorf("%s: lag %d of lease %s, want %d", p.name, lag, got.Lease, want.lag)
		case want.status != changefeed.StatusSplitting && got.Approximate != want.approximate:
			s.t.Errorf("%s: lease %s is approximate: %v", p.name, got.Lease, got.Approximate)
		case (got.Age == nil) != (want.age == nil), got.Age != nil && *got.Age != *want.age:
			s.t.Errorf("%s: the age of lease %s is %s, want %s", p.name, got.Lease, number(got.Age), number(want.age))
		}
		if want.sub != "" {
			sums[want.sub] += max(0, lag-1) // every part counts one, however little the range has
			most[want.sub] = max(most[want.sub], want.lag)
		}
	}
	for token, want := range expected {
		s.t.Errorf("%s: lease %s is missing, want %d %s", p.name, token, want.lag, want.status)
	}
	for id, sum := range sums {
		if sum > most[id] {
			s.t.Errorf("%s: the parts of range %s count %d beyond one each, but the range has no more than %d pending", p.name, id, sum, most[id])
		}
	}
	if s.t.Failed() {
		s.t.Logf("%s said: %s", p.name, describe(l))
		for _, c := range m.shards {
			s.t.Logf("range %+v", c)
		}
		for _, l := range p.leases {
			s.t.Logf("lease %+v", *l)
		}
	}
}

func number(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
