package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// dice make every choice of a run from its seed. A choice depends on what is chosen and never on what was
// chosen before: so the order in which goroutines ask does not matter, and one fault can be taken out of a
// run without another becoming a different one.
type dice uint64

// roll returns a number from 0 to 1 for a question.
func (d dice) roll(kind, where string, n ...int) float64 {
	const prime = 1099511628211
	h := uint64(d)*0x9E3779B97F4A7C15 ^ 14695981039346656037
	for _, text := range [...]string{kind, where} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
		h = (h ^ 0xFF) * prime
	}
	for _, v := range n {
		h = (h ^ uint64(v)) * prime
		h ^= h >> 29
	}
	// The finalizer of SplitMix64: neighbouring questions get unlike answers.
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return float64((h^h>>31)>>11) / (1 << 53)
}

// upTo returns a number from 0 to n-1.
func (d dice) upTo(n int, kind, where string, of ...int) int {
	return int(d.roll(kind, where, of...) * float64(n))
}

// The kinds of events that a run may meet, and how often at most: for each question, or each tick.
var kinds = map[string]float64{
	// of requests to Cosmos DB
	"throttle": 0.05, "unavailable": 0.05, "gone": 0.03, "completing split": 0.02, "cut body": 0.03, "empty body": 0.03,
	"refused connection": 0.05, "hang": 0.02, "forbidden": 0.05, "outage": 0.15, "silence": 0.05, "row gone": 0.002,
	"bad container": 0.2, // and no other one of these in the same run, so that its neighbours have to be measured
	// of requests to the store
	"store error": 0.05, "store answer lost": 0.05, "store hangs": 0.02, "row hangs": 0.05,
	// of the broker, the consumer, and the signal queues
	"broker error": 0.1, "broker answer lost": 0.1, "broker unreachable": 0.1, "broker hangs": 0.02,
	"signals error": 0.05, "signals answer lost": 0.05, "signals hang": 0.02, "signals taken": 0.1, "signals put": 0.1,
	"message twice": 0.15, "message late": 0.15, "message lost": 0.05,
	// of the pollers
	"crash": 0.06, "stop": 0.03, "absent": 0.1, "clock jump": 0.05, "reconfigure": 0.03,
	// of the processors and their containers
	"split": 0.03, "merge": 0.02, "owner change": 0.1, "unrepaired": 0.2, "hosts gone": 0.1, "hung": 0.1, "rewind": 0.01, "moves within": 0.3,
	"lease lost": 0.01, "lease from elsewhere": 0.01,
}

// choice is an event that came true: what can be left out of a run.
type choice struct {
	tick  int
	kind  string
	where string
	n     int
}

func (c choice) String() string { return fmt.Sprintf("tick %d: %s, %s", c.tick, c.kind, c.where) }

// plan is what a run is made from.
type plan struct {
	seed    uint64
	ticks   int
	without map[choice]bool // left out
	alone   []string        // the processors that there are; nil = all
}

// happens reports whether an event comes true in this tick.
func (w *world) happens(kind, where string, n int) bool { return w.happensAt(w.tick, kind, where, n) }

// lasts reports whether an event comes true that lasts for several ticks.
func (w *world) lasts(kind, where string, ticks int) bool {
	return w.happensAt(w.tick/ticks*ticks, kind, where, 0)
}

func (w *world) happensAt(tick int, kind, where string, n int) bool {
	if !w.faulty || w.dice.roll(kind, where, tick, n) >= w.rates[kind] {
		return false
	}
	c := choice{tick, kind, where, n}
	if w.plan.without[c] {
		return false
	}
	if !w.unrecorded && !w.came[c] {
		w.came[c] = true
		w.choices = append(w.choices, c)
	}
	return true
}

// swarm gives each run some of the kinds, at rates of its own: what hides behind a frequent fault shows
// in a run without that.
func (w *world) swarm() {
	w.rates = make(map[string]float64, len(kinds))
	for kind, most := range kinds {
		if w.dice.roll("swarm", kind) < 0.5 {
			w.rates[kind] = most * 2 * w.dice.roll("rate", kind)
		}
	}
	if w.rates["row gone"] > 0 {
		// A lost state begins a new life at the time of its first tick: a clock that is behind would begin
		// one before the old one, and nobody could tell which is newer.
		w.rates["clock jump"] = 0
	}
	w.rates["bad container"] = 0
	if w.neighbours = w.dice.roll("swarm", "neighbours") < 0.15; w.neighbours {
		for _, kind := range []string{"throttle", "unavailable", "gone", "completing split", "cut body", "empty body", "refused connection", "hang", "forbidden", "outage", "silence"} {
			w.rates[kind] = 0
		}
		w.rates["bad container"] = kinds["bad container"]
	}
	w.concurrency = 1
	if w.dice.roll("swarm", "concurrency") < 0.4 {
		// More than there are reads at an account, and no throttling, which would lower it: of several reads
		// that wait until another one ends, the scheduler and not the seed chooses which goes on.
		w.concurrency, w.rates["throttle"] = 64, 0
	}
}

// delay is how long a request takes to get through: each has its own, so that no two take effect at once.
func (w *world) delay(p *process, op string, attempt int) time.Duration {
	return time.Millisecond + time.Duration(w.dice.upTo(20_000_000, "delay", op, p.slot, w.tick, attempt))
}

// hang waits until a request is given up. Each is given up at a time of its own. The world is locked, and
// unlocked meanwhile.
func (w *world) hang(ctx context.Context, p *process, op string, attempt int) error {
	w.mu.Unlock()
	defer w.mu.Lock()
	<-ctx.Done()
	time.Sleep(w.delay(p, op, attempt) / 20)
	return ctx.Err()
}

// tell adds a line to the story of a run, where somebody listens.
func (w *world) tell(format string, args ...any) {
	if w.story != nil {
		*w.story = append(*w.story, fmt.Sprintf("%4d %12s  ", w.tick, time.Since(w.began))+fmt.Sprintf(format, args...))
	}
}

// fail notes that something is not as it has to be. The first counts.
func (w *world) fail(rule, format string, args ...any) {
	if w.failure == nil {
		w.failure = &failure{rule: rule, tick: w.tick, text: fmt.Sprintf(format, args...)}
		w.tell("BROKEN: %s: %s", rule, w.failure.text)
	}
}

// failure is what went wrong in a run.
type failure struct {
	rule string
	tick int
	text string
}

func (f *failure) String() string { return fmt.Sprintf("tick %d: %s: %s", f.tick, f.rule, f.text) }

// sortedKeys returns the keys of a map in order: ranging over one would be a choice that no seed makes.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
