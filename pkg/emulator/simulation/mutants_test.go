package simulation_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mutate = flag.Bool("mutants", false, "plant defects, and see that each is found")
	record = flag.String("record", "", "where each defect is found, write the table of them into this file")
	only   = flag.String("mutant", "", "plant those alone whose defect contains this text")
)

// mutant is a defect: a text of a production source, which is there once, and what is planted in its place.
type mutant struct {
	defect   string
	file     string // under pkg
	old, new string
}

var mutants = []mutant{
	{"a result that lost the compare-and-swap is published", "poller/tick.go", "\t\tt.Log.Info(\"another tick was faster", "\t\td.stage = committed\n\t\tt.Log.Info(\"another tick was faster"},
	{"a conflict is overwritten", "poller/tick.go", "\t\terr = t.Store.Commit(ctx, d.stored.Version, *d.next, d.event)\n", "\t\terr = t.Store.Commit(ctx, d.stored.Version, *d.next, d.event)\n\t\tif r, e := t.Store.Load(ctx, d.name); e == nil && errors.Is(err, state.ErrConflict) {\n\t\t\terr = t.Store.Commit(ctx, r.Version, *d.next, d.event)\n\t\t}\n"},
	{"an event is published before it is committed", "poller/tick.go", "\tt.commit(ctx, d)\n", "\tif d.event != nil {\n\t\t_ = t.send(ctx, *d.event)\n\t}\n\tt.commit(ctx, d)\n"},
	{"the outbox is emptied though nothing was published", "poller/publish.go", "\t\tif i != newest || left == 0 {\n", "\t\tif i >= 0 {\n"},
	{"of two waiting events the older is published", "poller/publish.go", "newest, id := len(outbox)-1, \"\"\n", "if true {\n\t\treturn 0\n\t}\n\tnewest, id := len(outbox)-1, \"\"\n"},
	{"a sequence is used again", "poller/subject.go", "Sequence: last.Sequence, Published", "Sequence: max(0, last.Sequence-int64(len(d.stored.Outbox))), Published"},
	{"a lost state begins the same epoch again", "poller/subject.go", "s.Epoch = now.Unix()", "s.Epoch = 1"},
	{"no heartbeat", "poller/publish.go", "return p.Heartbeat > 0 && now.Sub", "return false && now.Sub"},
	{"a change of activity alone is not published", "poller/publish.go", "last.Active != s.Decision.Active:", "false:"},
	{"a clock that was ahead holds the heartbeat back", "poller/publish.go", "now.Sub(last.Time).Abs() >= p.Heartbeat", "now.Sub(last.Time) >= p.Heartbeat"},
	{"what a removed processor leaves is never published", "poller/publish.go", "if t.drained.Load() || t.stopping.Err() != nil {", "if true {"},
	{"a group has what its last member asks for", "scaling/group.go", "if top < 0 || *m.Replicas > c.replicas {", "if true {"},
	{"an unknown member asks for nothing", "scaling/group.go", "undecided > 0 && last != nil {", "false && last != nil {"},
	{"a paused member that cannot be read asks for nothing", "poller/group.go", "m.processor.Policy.Paused && !m.asks.unread", "m.processor.Policy.Paused"},
	{"an incomplete poll may scale in", "scaling/unknown.go", "\tif c.basis != partial {\n", "\tif true {\n"},
	{"a failure counts as a lag of zero", "scaling/decide.go", "\tswitch {\n\tcase m.known:\n", "\tif in.Lag.Error == \"\" {\n\t\tm.known, m.gaps = true, \"\"\n\t}\n\tswitch {\n\tcase m.known:\n"},
	{"a partition that cannot be read is zero", "estimator/measurement.go", "\tcase l.pages[0].err != nil:\n\t\tp.Error = l.pages[0].err.Error()\n", "\tcase l.pages[0].err != nil:\n\t\tp.Lag, p.Status = new(int64), changefeed.StatusOK\n"},
	{"a lease whose range is gone may count zero", "changefeed/shares.go", "greatest := Reading{Lag: 1, ", "greatest := Reading{"},
	{"of a range that was split the first child alone counts", "estimator/measurement.go", "\t\t\tl.Readings = append(l.Readings, p.reading)\n", "\t\t\tr := p.reading\n\t\t\tif len(l.Readings) > 0 {\n\t\t\t\tr = changefeed.Reading{}\n\t\t\t}\n\t\t\tl.Readings = append(l.Readings, r)\n"},
	{"a range that cannot be read while it is split counts two", "changefeed/shares.go", "greatest.Lag = 1\n", "greatest.Lag = 2\n"},
	{"a range that has replaced another one counts one more though it was read", "changefeed/shares.go", "greatest.Lag, greatest.SessionLSN = r.Lag, r.SessionLSN", "greatest.Lag, greatest.SessionLSN = r.Lag+1, r.SessionLSN"},
	{"uncovered keys are never found", "changefeed/ranges.go", "return Range{Min: rs[0].Min, Max: rs[len(rs)-1].Max}.Gaps(covered), true", "return nil, true"},
	{"a position that its feed has reached is ahead", "health/progress.go", "case !p.Beyond():\n\t\treturn AheadPosition{}\n\tcase seen.Polls == 0 || *p.SessionLSN >= seen.Position:\n", "case p.CheckpointLSN == nil || p.SessionLSN == nil || p.Pending():\n\t\treturn AheadPosition{}\n\tcase seen.Polls == 0:\n"},
	{"a position that its feed has not reached counts as read to the end", "health/progress.go", "if seen.Polls >= aheadPolls &&", "if false &&"},
	{"an unknown partition begins the minute of a position that is ahead anew", "health/progress.go", "\t\treturn seen\n\tcase p.Carried", "\t\treturn AheadPosition{}\n\tcase p.Carried"},
	{"positions that are ahead call for a fallback", "scaling/decide.go", "\tcase in.Lag.Ahead():\n", "\tcase false:\n"},
	{"the first page of leases passes for all", "cosmos/leases.go", "\t\tif more := take(t.items); !more || !pager.More() {\n\t\t\treturn !pager.More(), nil\n", "\t\tif take(t.items); true {\n\t\t\treturn true, nil\n"},
	{"an empty answer passes for a page without leases", "cosmos/policies.go", "\tif !json.Valid(body) {\n", "\tif len(body) == 0 && strings.HasSuffix(path, \"/docs\") {\n\t\treturn nil, nil\n\t}\n\tif !json.Valid(body) {\n"},
	{"a page of the feed that is cut passes for an empty one", "cosmos/feed.go", "\t\terr = oddError(err.Error())\n", "\t\terr = nil\n"},
	{"a lag is one too small", "changefeed/answer.go", "AddLag(1, *r.SessionLSN-*first.LSN)", "AddLag(0, *r.SessionLSN-*first.LSN)"},
	{"an account that was silent is never asked again", "cosmos/breaker.go", "\tcase reply:\n\t\tb.failures = 0\n", "\tcase reply:\n"},
	{"partitions that do not answer open the breaker of their account", "cosmos/breaker.go", "account, own := h.of(Container{}), h.of(c.about.Container)\n", "account, own := h.of(Container{}), h.of(Container{})\n\tclear(own.looks)\n"},
	{"a container that hangs keeps the slots of its account", "cosmos/slots.go", "t.failing && !t.keeps {\n", "t == nil {\n"},
	{"zero comes without a cooldown", "scaling/behavior.go", "case idle >= in.Policy.Cooldown:", "case true:"},
	{"maxReplicaCount is not kept", "scaling/decide.go", "most != nil && c.replicas > *most {", "most != nil && c.replicas > 2**most {"},
	{"a pause forgets the decision before it", "scaling/decide.go", "\t} else {\n\t\tnext.Replicas", "\t}\n\tif true {\n\t\tnext.Replicas"},
	{"throughput is never given back", "actions/throughput/throughput.go", "back := last.Found > 0 && (!c.Apply || !follows)", "back := false"},
	{"throughput is changed before what was found is remembered", "actions/throughput/turn.go", "switch err := t.commit(ctx, s, s.next, s.next.Found > 0 || follows); {", "switch err := error(nil); {"},
	{"throughput that is recommended is written", "actions/throughput/throughput.go", "\tif c.Apply {\n\t\ttarget =", "\tif true {\n\t\ttarget ="},
	{"throughput that was to be changed and was not is somebody else's", "actions/throughput/throughput.go", "read.RUPerSecond == c.Was || read.RUPerSecond == c.Late", "false"},
	{"a signal queue that is left keeps its messages", "poller/signals.go", "if s.scope.Shard == nil && !s.configured(q) {", "if false {"},
	{"a signal queue is made right with an event alone", "poller/tick.go", "\tt.signals.keep(ctx, d, d.next)\n", "\tif d.event != nil {\n\t\tt.signals.keep(ctx, d, d.next)\n\t}\n"},
	{"a failure empties the signal queue", "poller/signals.go", "\terr := s.do(ctx, func(ctx context.Context) error { return s.Signals.Keep(ctx, d.signal", "\tif !decided.Lag.Known() {\n\t\treplicas = new(int)\n\t}\n\terr := s.do(ctx, func(ctx context.Context) error { return s.Signals.Keep(ctx, d.signal"},
	{"one signal too much stays", "events/servicebus/signals.go", "case err != nil || more == 0:", "case err != nil || more == 0 || more == 1:"},
	{"all signals are taken back and sent anew", "events/servicebus/signals.go", "q.takeBack(ctx, present[:more])", "q.takeBack(ctx, present)"},
}

var foundBy = regexp.MustCompile(`seed (\d+): tick \d+: ([^:]*): .*\(after (\d+) ticks\)`)

// overlay writes the sources of a mutant, and what makes the go command use them.
func (m mutant) overlay(folder string) (string, error) {
	path, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s: what is to be replaced is there %d times: plant it anew", m.file, n)
	}
	planted, list := filepath.Join(folder, "planted.go"), filepath.Join(folder, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: planted}})
	return list, errors.Join(err, os.WriteFile(planted, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600), os.WriteFile(list, text, 0o600))
}

// TestEveryMutantCanBePlanted fails where a source has changed so that a defect no longer fits into it.
func TestEveryMutantCanBePlanted(t *testing.T) {
	for _, m := range mutants {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.defect, err)
		}
	}
}

const tableHead = "| defect | seed | ticks | the rule that is broken |\n|---|---:|---:|---|\n"

// TestEveryMutantIsFound is `make mutants`. Where each was found, the record gets the table.
func TestEveryMutantIsFound(t *testing.T) {
	if !*mutate {
		t.Skip("make mutants plants them: each is a build of its own")
	}
	if TestEveryMutantCanBePlanted(t); t.Failed() {
		t.Fatal("nothing was run")
	}
	table := tableHead
	for _, m := range mutants {
		if !strings.Contains(m.defect, *only) {
			continue
		}
		folder := t.TempDir()
		list, err := m.overlay(folder)
		if err != nil {
			t.Errorf("%s: %v", m.defect, err)
			continue
		}
		program := filepath.Join(folder, "simulation.test")
		if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", m.defect, err, out)
			continue
		}
		out, err := exec.CommandContext(t.Context(), program, "-test.run", "^TestNoFaultBreaksAPromise$", "-test.timeout", "30m", "-shrink", "0", "-seed", fmt.Sprint(*seed), "-ticks", fmt.Sprint(*ticks)).CombinedOutput()
		switch by := foundBy.FindSubmatch(out); {
		case err == nil:
			t.Errorf("%s: not found in %d ticks", m.defect, *ticks)
		case by == nil:
			t.Errorf("%s: %v: %s", m.defect, err, out[:min(len(out), 2000)])
		default:
			line := fmt.Sprintf("| %s | %s | %s | %s |\n", m.defect, by[1], by[3], by[2])
			fmt.Print(line)
			table += line
		}
	}
	if *record != "" && *only == "" && !t.Failed() {
		text, err := os.ReadFile(*record)
		if err != nil {
			t.Fatal(err)
		}
		before, after, found := strings.Cut(string(text), tableHead)
		if !found {
			t.Fatalf("%s has no table of planted defects", *record)
		}
		for strings.HasPrefix(after, "|") {
			_, after, _ = strings.Cut(after, "\n")
		}
		if err := os.WriteFile(*record, []byte(before+table+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
