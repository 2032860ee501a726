package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state"
)

// policies is a file of two to compare with what is built in.
const policies = "testdata/simulate/policies.yaml"

// simulated is the JSON of simulate.
type simulated struct {
	Trace struct {
		Name                                              string
		Seed                                              *uint64
		Seconds, Partitions, Transactions, GuessedSeconds int64
	}
	Workers struct{ ThroughputPerReplica, StartUpSeconds float64 }
	Results []struct {
		Policy                               string
		ReplicaHours                         float64
		SecondsOverLag, SecondsOverAge       int64
		Actions, ScaleOuts, ScaleIns         int
		MaxLag, MaxAgeSeconds, P99AgeSeconds *int64
		Arrived, Processed, Left             int64
		FixedReplicas                        *int
		Series                               []map[string]int64
	}
}

func simulateJSON(t *testing.T, args ...string) simulated {
	t.Helper()
	r := feedscale{}.run(t, append([]string{"simulate", "--output", "json"}, args...)...)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	return testworld.Decode[simulated](t, []byte(r.Stdout))
}

func TestSimulateShowsPeopleTheSameOfTheSameSeed(t *testing.T) {
	t.Parallel()
	burst := []string{"--trace", "burst", "--seed", "7", "--duration", "6h"}
	compared := append(burst, "--compare", "--policies", policies)
	for _, c := range []struct {
		golden string
		width  int
		args   []string
	}{
		{"simulate", 0, burst},
		{"simulate-terminal", 60, burst},
		{"simulate-compare", 0, compared},
		{"simulate-compare-terminal", 60, compared},
	} {
		t.Run(c.golden, func(t *testing.T) {
			t.Parallel()
			r := feedscale{width: c.width}.run(t, append([]string{"simulate"}, c.args...)...)
			if r.Status != 0 || r.Stderr != "" {
				t.Errorf("status %d: %s", r.Status, r.Stderr)
			}
			testworld.Golden(t, *update, c.golden, r.Stdout)
		})
	}
}

func TestSimulateJSONAddsUp(t *testing.T) {
	t.Parallel()
	out := simulateJSON(t, "--trace", "herd", "--duration", "3h", "--partitions", "4", "--compare", "--policies", policies)
	if out.Trace.Name != "herd" || out.Trace.Seed == nil || *out.Trace.Seed != 1 || out.Trace.Seconds != 3*3600 || out.Trace.Partitions != 4 {
		t.Errorf("trace %+v", out.Trace)
	}
	var names []string
	for _, p := range out.Results {
		names = append(names, p.Policy)
		if p.Arrived != out.Trace.Transactions || p.Arrived != p.Processed+p.Left || p.Actions != p.ScaleOuts+p.ScaleIns || (p.FixedReplicas != nil) != (p.Policy == "fixed") {
			t.Errorf("%s does not add up: %+v", p.Policy, p)
		}
		if len(p.Series) == 0 || len(p.Series) > 1000 {
			t.Errorf("%s has %d points", p.Policy, len(p.Series))
		}
	}
	if want := []string{"default", "keda", "catch-up", "fresh", "fixed"}; !reflect.DeepEqual(names, want) {
		t.Errorf("policies %v, want %v", names, want)
	}
}

func TestSimulateChoosesPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		args []string
		want string
	}{
		{"default by default", nil, "[default]"},
		{"one that is built in", []string{"--policy", "keda"}, "[keda]"},
		{"a file's, all of them", []string{"--policies", policies}, "[catch-up fresh]"},
		{"one of a file", []string{"--policies", policies, "--policy", "fresh"}, "[fresh]"},
		{"one that is built in, beside a file", []string{"--policies", policies, "--policy", "default"}, "[default]"},
		{"what is built in side by side", []string{"--compare"}, "[default keda fixed]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, p := range simulateJSON(t, append(c.args, "--duration", "10m")...).Results {
				names = append(names, p.Policy)
			}
			if got := fmt.Sprint(names); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// anHour is what a poll a minute recorded: 600 pending at first, ten a second
// for an hour, five minutes of which are unknown.
func anHour() []state.Sample {
	var samples []state.Sample
	for minute := range 61 {
		s := state.Sample{Time: noon.Add(time.Duration(minute) * time.Minute), Status: changefeed.StatusUnknown}
		if minute < 20 || minute >= 25 {
			s.Lag, s.Complete, s.PartitionCount, s.PartitionsWithLag = new(int64(600)), true, new(4), new(4)
			s.Arrival, s.DrainPerReplica = new(10.0), new(12.5)
		}
		samples = append(samples, s)
	}
	return samples
}

func TestSimulateReplaysWhatHistoryPrints(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	testworld.Must(t, json.NewEncoder(&text).Encode(map[string]any{"processor": "orders", "samples": anHour()}))
	var lines strings.Builder
	lines.WriteString("time,lag,changeAgeSeconds,complete,status,partitionCount,partitionsWithLag,arrivalPerSecond,drainPerReplica,metricValue,active,previousReplicas,desiredReplicas,direction,why\n")
	for _, s := range anHour() {
		if s.Complete {
			fmt.Fprintf(&lines, "%s,%d,,true,lagging,4,4,10,12.5,,,,,,\"threshold: lag 600, as it was\"\n", s.Time.Format(time.RFC3339Nano), *s.Lag)
		} else {
			fmt.Fprintf(&lines, "%s,,,false,unknown,,,,,,,,,,\n", s.Time.Format(time.RFC3339Nano))
		}
	}
	folder := t.TempDir()
	written := map[string]string{"orders.json": text.String(), "orders.csv": lines.String()}
	for name, content := range written {
		testworld.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	var results []any
	for _, file := range []string{"orders.json", "orders.csv"} {
		out := simulateJSON(t, "--trace", filepath.Join(folder, file))
		if out.Trace.Seed != nil || out.Trace.Seconds != 3600 || out.Trace.Partitions != 4 || out.Trace.Transactions != 600+36_000 || out.Trace.GuessedSeconds != 300 {
			t.Errorf("%s: trace %+v", file, out.Trace)
		}
		if out.Workers.ThroughputPerReplica != 12.5 {
			t.Errorf("%s: a replica does %v, want the 12.5 recorded", file, out.Workers.ThroughputPerReplica)
		}
		if want := map[string]string{"orders.json": "orders", "orders.csv": "orders.csv"}[file]; out.Trace.Name != want {
			t.Errorf("%s is called %s, want %s", file, out.Trace.Name, want)
		}
		results = append(results, out.Results)
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		t.Error("JSON and CSV of one history are replayed differently")
	}
	given := simulateJSON(t, "--trace", filepath.Join(folder, "orders.json"), "--throughput", "100", "--partitions", "2")
	if given.Workers.ThroughputPerReplica != 100 || given.Trace.Partitions != 2 {
		t.Errorf("given were 100 and 2: %+v, %+v", given.Workers, given.Trace)
	}
	r := feedscale{}.run(t, "simulate", "--trace", filepath.Join(folder, "orders.json"))
	for _, want := range []string{"orders, recorded from 2026-03-01T12:00:00Z: 1h, 4 partitions, 36.6k transactions\n", "for 5m no arrival rate was recorded"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q is missing in\n%s", want, r.Stdout)
		}
	}
}

func TestSimulateListsEveryMistakeAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		args []string
		want []string
	}{
		{"flags", []string{"--seed", "-1", "--seeds", "0", "--duration", "1", "--partitions", "0", "--rate", "none", "--throughput", "NaN", "--startup", "2h", "--poll", "0s", "--since", "x", "--output", "csv", "--policy", "kedda"}, []string{
			`--seed is "-1"; allowed are whole numbers from 0 to 18446744073709551615`,
			`--seeds is "0"; allowed are whole numbers from 1 to 1000`,
			`--duration is "1"; allowed are durations, such as 90s or 1h30m, from 1s to 8760h`,
			`--partitions is "0"; allowed are whole numbers from 1 to 100000`,
			`--rate is "none"; allowed are transactions per second from 0.001 to 1000000`,
			`--throughput is "NaN"; allowed are transactions per second from 0.001 to 1000000`,
			`--startup is "2h"; allowed are durations, such as 90s or 1h30m, from 0s to 1h`,
			`--poll is "0s"; allowed are durations, such as 90s or 1h30m, from 1s to 1h`,
			`--since is "x"; allowed are durations, such as 90s or 1h30m, from 1s to 8760h`,
			`--output is "csv"; allowed are table and json`,
			`--policy is "kedda"; allowed are default, keda, and the names in --policies`,
			"--since is for --trace history:PROCESSOR; leave it out with another trace",
		}},
		{"flags of earlier releases", []string{"--matrix", "--chart=false", "--skew", "1", "--acting", "keda", "--delay", "5s", "--failed-polls", "0.1", "--rebalance", "1s", "--poll-delay", "5s", "--batch", "10", "--batch-time", "1s", "--ru-per-change", "1", "--ru-limit", "400", "--lag-objective", "5", "--age-objective", "1m"}, []string{
			"--matrix is removed: it is in the laboratory of the sources, make policies", "--chart is removed: a table always has its charts",
			"--skew is removed", "--acting is removed", "--delay is removed", "--failed-polls is removed", "--rebalance is removed",
			"--poll-delay is removed", "--batch is removed", "--batch-time is removed", "--ru-per-change is removed", "--ru-limit is removed",
			"--lag-objective is removed: the objectives are a lag of 1000 and an age of 60s", "--age-objective is removed",
		}},
		{"a name of a policy that its file has not", []string{"--policies", policies, "--policy", "brisk"}, []string{`--policy is "brisk"; allowed are default, keda, and the names in --policies`}},
		{"two ways to choose policies", []string{"--policy", "keda", "--compare"}, []string{"--policy and --compare are given; allowed is one of them"}},
		{"policies, each at its place", []string{"--policies", "testdata/simulate/mistaken.yaml"}, []string{
			`mistaken.yaml:2: policies[0] (keda).name: "keda" is built in; allowed is another name`,
			"mistaken.yaml:4: policies[1] (slow).changefeedlagthreshold: is an unknown field; did you mean changeFeedLagThreshold?",
		}},
		{"a file of policies that is not there", []string{"--policies", "nowhere.yaml"}, []string{"--policies: open nowhere.yaml: no such file or directory; allowed is a file"}},
		{"a trace that is not there, with flags of a synthetic one", []string{"--trace", "dayly", "--seed", "3", "--rate", "5", "--duration", "1h"}, []string{
			"--seed is for --trace with a built-in name", "--duration is for --trace", "--rate is for --trace",
			`--trace: there is no "dayly"; allowed are steady, ramp, step, sawtooth, burst, daily, herd, sparse, history:PROCESSOR, or a file that is there`,
		}},
		{"more than memory holds", []string{"--duration", "8760h", "--partitions", "1000"}, []string{"up to 50000000 for seconds x partitions; shorten --duration or take fewer --partitions"}},
		{"a recording without samples", []string{"--trace", "testdata/simulate/empty.json"}, []string{"--trace: recording orders: no sample knows the lag"}},
		{"broken JSON", []string{"--trace", "testdata/simulate/broken.json"}, []string{"--trace: testdata/simulate/broken.json: unexpected end of JSON input; allowed is what feedscale history prints"}},
		{"another table", []string{"--trace", "testdata/simulate/foreign.csv"}, []string{"--trace: testdata/simulate/foreign.csv: it has no column time"}},
		{"an empty file", []string{"--trace", "testdata/simulate/nothing.csv"}, []string{"--trace: testdata/simulate/nothing.csv: it is neither JSON nor CSV"}},
		{"a sample without a time", []string{"--trace", "testdata/simulate/timeless.json"}, []string{"--trace: testdata/simulate/timeless.json: sample 1 has no time"}},
		{"a lag that is no number", []string{"--trace", "testdata/simulate/lag.csv"}, []string{`--trace: testdata/simulate/lag.csv: sample 1: lag is "much", which cannot be read`}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := feedscale{}.run(t, append([]string{"simulate"}, c.args...)...)
			if r.Status != 2 || r.Stdout != "" {
				t.Errorf("status %d, stdout %q", r.Status, r.Stdout)
			}
			lines := strings.Split(strings.TrimSuffix(r.Stderr, "\n"), "\n")
			if len(lines) != len(c.want) {
				t.Errorf("%d mistakes, want %d", len(lines), len(c.want))
			}
			for i, want := range c.want {
				if i >= len(lines) || !strings.HasPrefix(lines[i], "feedscale: ") || !strings.Contains(lines[i], want) {
					t.Errorf("mistake %d does not say %q:\n%s", i+1, want, r.Stderr)
				}
			}
		})
	}
}
