package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

var (
	small = Matrix{
		Load: Load{Duration: time.Hour, Rate: 40}, Workers: simulate.Workers{Throughput: 25, PollDelay: 5 * time.Second},
		Objective: simulate.Objective{Lag: 500, Age: time.Minute}, Seed: 3, Seeds: 2,
		Contenders: contenders([]simulate.Policy{simulate.Feedscale("default", policy(nil), simulate.DefaultEvery)}, []time.Duration{0, 30 * time.Second}),
	}
	few    = cells(shapesNamed([]string{"burst", "hot"}), []int{4, 6}, []time.Duration{5 * time.Second, time.Minute})
	nobody = func(int, int) {}
)

// TestTheSameWhateverRunsBesideIt_Long changes GOMAXPROCS, so it cannot run in parallel.
func TestTheSameWhateverRunsBesideIt_Long(t *testing.T) {
	var all []string
	for _, procs := range []int{1, 2, 7} {
		before := runtime.GOMAXPROCS(procs)
		meetings, err := small.Run(t.Context(), few, nobody)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := small.writeCSV(&b, meetings); err != nil {
			t.Fatal(err)
		}
		all = append(all, b.String())
	}
	if all[0] != all[1] || all[0] != all[2] {
		t.Error("the results depend on how many replays run at once")
	}
}

func TestAMatrixHasEveryCellOfEveryContender_Long(t *testing.T) {
	t.Parallel()
	told := 0
	meetings, err := small.Run(t.Context(), few, func(done, all int) {
		if told++; done != told || all != 16 {
			t.Errorf("%d of %d are done", done, all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if told != 16 || len(meetings) != 8 {
		t.Fatalf("%d replays, %d cells", told, len(meetings))
	}
	m := meetings[3]
	if m.Shape.Name != "burst" || m.Partitions != 6 || m.StartUp != time.Minute || len(m.Results) != 10 {
		t.Errorf("%s, %d partitions, %s, %d results", m.Shape.Name, m.Partitions, m.StartUp, len(m.Results))
	}
	if m.Fixed.Fixed < 1 || m.Bound.Scaler != "bound" || m.Bound.ReplicaHours <= 0 || m.Bound.ReplicaHours > m.Fixed.ReplicaHours {
		t.Errorf("%d fixed for %v hours, a bound of %v", m.Fixed.Fixed, m.Fixed.ReplicaHours, m.Bound.ReplicaHours)
	}
	// A result is the mean over single replays.
	var hours float64
	c, w := small.Contenders[6], small.Workers
	w.StartUp = time.Minute
	for seed := range uint64(2) {
		tr := arrivals(t, m.Shape, 3+seed, Load{Duration: time.Hour, Partitions: 6, Rate: 40})
		hours += simulate.Run(tr, w, c, simulate.Conditions{Seed: 3 + seed}, small.Objective).ReplicaHours / 2
	}
	if c.Acting != MetricsAPI || c.Delay != 30*time.Second || m.Results[6].ReplicaHours != hours {
		t.Errorf("%s, %s: %v replica-hours, want %v", c.Acting, c.Delay, m.Results[6].ReplicaHours, hours)
	}
}

func TestAMatrixStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := small.Run(ctx, few, func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTheSummarySaysInHowManyCellsAWishFails(t *testing.T) {
	t.Parallel()
	m := Matrix{Contenders: []Contender{{simulate.FixedCount(1), Consumer, 0}, {simulate.KEDA(), KEDATrigger, 0}}}
	var meetings []Meeting
	for i, hours := range []float64{60, 80} {
		meetings = append(meetings, Meeting{
			Cell: Cell{Shape: Shape{Name: "steady"}, Partitions: 8, StartUp: time.Duration(i) * time.Minute},
			Results: []Result{
				{Result: simulate.Result{ReplicaHours: hours, OverLag: time.Minute, Out: 2, In: i}},
				{Result: simulate.Result{ReplicaHours: 70, OverLag: time.Minute, Out: 2}},
			},
			Fixed: Result{Result: simulate.Result{ReplicaHours: 100}}, Bound: Result{Result: simulate.Result{ReplicaHours: 50}},
		})
	}
	var b strings.Builder
	if err := m.writeSummary(&b, meetings); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if got, want := strings.Join(strings.Fields(lines[1]), " "), "steady fixed consumer 70.0 1.40 100.0 60 s 0 s 2 0 2 1 0 0 2 1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(lines) != 4 || !strings.Contains(lines[2], "keda") {
		t.Errorf("lines\n%s", b.String())
	}
}

// recorded reads the CSV of decision 0011.
func recorded(t *testing.T, text []byte) (m Matrix, meetings []Meeting) {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || strings.Join(lines[0], ",") != strings.Join(columns, ",") {
		t.Fatalf("columns %s, %v", lines[0], err)
	}
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	seconds := func(text string) time.Duration { return time.Duration(number(text)) * time.Second }
	for _, line := range lines[1:] {
		hours, _ := strconv.ParseFloat(line[7], 64)
		r := Result{Result: simulate.Result{
			Scaler: line[5], ReplicaHours: hours, OverLag: seconds(line[8]), OverAge: seconds(line[9]),
			Out: int(number(line[11])), In: int(number(line[12])), Arrived: number(line[16]), Left: number(line[18]), Fixed: int(number(line[19])),
			MaxLag: number(line[13]), MaxAge: seconds(line[14]), P99Age: seconds(line[15]), Processed: number(line[17]),
		}}
		cell := Cell{Shape: Shape{Name: line[0]}, Partitions: int(number(line[1])), StartUp: seconds(line[2])}
		if last := len(meetings) - 1; last < 0 || meetings[last].Shape.Name != line[0] || meetings[last].StartUp != cell.StartUp {
			meetings = append(meetings, Meeting{Cell: cell})
		}
		of := &meetings[len(meetings)-1]
		switch line[5] {
		case "fixed":
			of.Fixed = r
		case "bound":
			of.Bound = r
		default:
			of.Results = append(of.Results, r)
			if len(meetings) == 1 {
				// The tables do not depend on the deciding code.
				m.Contenders = append(m.Contenders, Contender{simulate.Feedscale(line[5], policy(nil), 0), Acting(line[4]), seconds(line[3])})
			}
		}
		m.Seeds = int(number(line[6]))
	}
	return m, meetings
}

// TestTheRecordIsMadeOfItsCSV writes the record from its own CSV.
func TestTheRecordIsMadeOfItsCSV(t *testing.T) {
	t.Parallel()
	const record = "../../../docs/decisions/0011-default-policy"
	there := filepath.Join(t.TempDir(), "0011")
	for _, end := range []string{".md", ".csv"} {
		text, err := os.ReadFile(record + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(there+end, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(there + ".csv")
	m, meetings := recorded(t, text)
	if err := m.write(there, meetings); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{".md", ".csv"} {
		want, _ := os.ReadFile(record + end)
		if got, _ := os.ReadFile(there + end); !bytes.Equal(got, want) {
			t.Errorf("%s is not made of these numbers", record+end)
		}
	}
}

// TestTheModelGivesWhatIsRecorded_Long replays one cell of the record, without feedscale's policies. So
// a change of the model needs a new record at once, and a change of a policy does not.
func TestTheModelGivesWhatIsRecorded_Long(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/decisions/0011-default-policy.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, meetings := recorded(t, text)
	i := slices.IndexFunc(meetings, func(m Meeting) bool { return m.Shape.Name == "hot" && m.StartUp == 5*time.Second })
	want := meetings[i]
	m := Matrix{
		Load: Load{Duration: 24 * time.Hour, Rate: 40}, Workers: simulate.DefaultWorkers(),
		Objective: simulate.Objective{Lag: 1000, Age: time.Minute}, Seed: 1, Seeds: 2,
		Contenders: contenders(nil, []time.Duration{actingDelay}),
	}
	got, err := m.Run(t.Context(), cells(shapesNamed([]string{"hot"}), []int{8}, []time.Duration{5 * time.Second}), nobody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want Result }{{got[0].Results[0], want.Results[4]}, {got[0].Fixed, want.Fixed}, {got[0].Bound, want.Bound}} {
		if got, want := numbers(c.got.Result), numbers(c.want.Result); c.got.Scaler != c.want.Scaler || !slices.Equal(got, want) {
			t.Errorf("%s: %v, recorded is %v", c.got.Scaler, got, want)
		}
	}
}

func TestTheCommandSumsUpAPart(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	args := strings.Fields("-shapes step -duration 2m -seeds 1 -partitions 4 -startups 5s -delays 0s -ru-per-change 20 -ru-limit 500 -ru-max 900")
	if err := run(t.Context(), args, &out, &progress); err != nil {
		t.Fatal(err)
	}
	// The default policy in four ways, and KEDA.
	if lines := strings.Count(out.String(), "\n"); lines != 1+4+1 || !strings.Contains(progress.String(), "1 of 1") {
		t.Errorf("%d lines\n%s\n%s", lines, out.String(), progress.String())
	}
	for rule, args := range map[string][]string{
		"a shape that there is not": {"-shapes", "dayly", "-seeds", "1"}, "no seeds": {"-seeds", "0"}, "a time that is none": {"-delays", "0s,soon"},
		"a record that is not there": {"-record", filepath.Join(t.TempDir(), "0099"), "-shapes", "step", "-duration", "2m", "-seeds", "1", "-startups", "5s", "-delays", "0s"},
	} {
		if err := run(t.Context(), args, &out, &progress); err == nil {
			t.Errorf("%s is taken", rule)
		}
	}
}
