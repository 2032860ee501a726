package state_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

func polled() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// notRecorded is what a sample of an earlier release says of what later ones record.
const notRecorded = `"liveOwners":null,"requestCharge":null,"secondsOverObjective":null,"statusSeconds":null,`

func TestTheJSONOfASampleHasEveryField(t *testing.T) {
	t.Parallel()
	lag, age, none := int64(412), int64(34), int64(0)
	measured := changefeed.ProcessorLag{Time: polled(), Partitions: []changefeed.Partition{
		{Lease: "0", Lag: &lag, Age: &age, Status: changefeed.StatusLagging, Ranges: 2},
		{Lease: "1", Lag: &none, Status: changefeed.StatusOK},
	}}
	decision := scaling.Decision{
		Replicas: 5, Previous: new(3), Direction: scaling.Out, Active: true, MetricValue: math.MaxInt64,
		Reasons: []scaling.Reason{{Step: "threshold", Replicas: 5, Why: "lag 412 at 100 per replica"}},
	}
	for name, tt := range map[string]struct {
		state state.State
		want  string
	}{
		"a poll that measured and decided": {
			state.State{AttemptedAt: polled().In(time.FixedZone("", 3600)), Lag: measured, Decision: &decision, Memory: scaling.Memory{Arrival: new(0.0), DrainPerReplica: 2.5}},
			`{"time":"2026-01-02T03:04:05Z","lag":412,"changeAgeSeconds":34,"complete":true,"status":"lagging","partitionCount":3,"partitionsWithLag":1,` +
				`"arrivalPerSecond":0,"drainPerReplica":2.5,` + notRecorded + `"metricValue":9223372036854775807,"active":true,"desiredReplicas":5,"previousReplicas":3,"direction":"out",` +
				`"reasons":[{"step":"threshold","replicas":5,"why":"lag 412 at 100 per replica"}],` +
				`"partitions":[{"lease":"0","lag":412,"status":"lagging"},{"lease":"1","lag":0,"status":"ok"}]}`,
		},
		"a poll that could not measure, nor decide": {
			state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Time: polled(), Error: "no leases"}},
			`{"time":"2026-01-02T03:04:05Z","lag":null,"changeAgeSeconds":null,"complete":false,"status":"unknown","partitionCount":null,"partitionsWithLag":null,` +
				`"arrivalPerSecond":null,"drainPerReplica":null,` + notRecorded + `"metricValue":null,"active":null,"desiredReplicas":null,"previousReplicas":null,"direction":null,"reasons":[],"partitions":[]}`,
		},
		"a poll that found the partitions, and could measure none of them": {
			state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Time: polled(), Partitions: []changefeed.Partition{{Lease: "0", Status: changefeed.StatusUnknown, Error: "429"}}}},
			`{"time":"2026-01-02T03:04:05Z","lag":null,"changeAgeSeconds":null,"complete":false,"status":"unknown","partitionCount":1,"partitionsWithLag":null,` +
				`"arrivalPerSecond":null,"drainPerReplica":null,` + notRecorded + `"metricValue":null,"active":null,"desiredReplicas":null,"previousReplicas":null,"direction":null,"reasons":[],"partitions":[]}`,
		},
	} {
		text, err := tt.state.Sample().Encode()
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != tt.want {
			t.Errorf("%s: got %s, want %s", name, text, tt.want)
		}
	}
}

func TestASampleKeepsAllReasonsOnlyWhereTheReplicasChange(t *testing.T) {
	t.Parallel()
	first, last := scaling.Reason{Step: "threshold", Replicas: 3, Why: "a"}, scaling.Reason{Step: "clamp", Replicas: 2, Why: "b"}
	for name, tt := range map[string]struct {
		previous      *int
		reasons, want []scaling.Reason
	}{
		"the first decision":            {nil, []scaling.Reason{first, last}, []scaling.Reason{first, last}},
		"more replicas":                 {new(1), []scaling.Reason{first, last}, []scaling.Reason{first, last}},
		"fewer replicas":                {new(3), []scaling.Reason{first, last}, []scaling.Reason{first, last}},
		"as many replicas as before":    {new(2), []scaling.Reason{first, last}, []scaling.Reason{last}},
		"as many, for one reason":       {new(2), []scaling.Reason{first}, []scaling.Reason{first}},
		"as many, without any reason":   {new(2), nil, []scaling.Reason{}},
		"fewer, without any reason":     {new(3), nil, []scaling.Reason{}},
		"the first, without any reason": {nil, nil, []scaling.Reason{}},
	} {
		s := state.State{Decision: &scaling.Decision{Replicas: 2, Previous: tt.previous, Reasons: tt.reasons}}
		if got := s.Sample().Reasons; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestALongSampleLosesItsFirstReasons(t *testing.T) {
	t.Parallel()
	const most = 2_000
	base := state.State{AttemptedAt: polled(), Decision: &scaling.Decision{}}
	encode := func(whys ...string) (reasons []scaling.Reason, units int) {
		t.Helper()
		sample := base.Sample()
		for i, why := range whys {
			sample.Reasons = append(sample.Reasons, scaling.Reason{Replicas: i, Why: why})
		}
		text, err := sample.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(sample.Reasons) != len(whys) {
			t.Error("the sample itself has lost reasons")
		}
		var back state.Sample
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		return back.Reasons, len(utf16.Encode([]rune(string(text))))
	}
	_, empty := encode("")
	room := most - empty

	for name, tt := range map[string]struct {
		whys []string
		kept int // of the last reasons
	}{
		"as long as allowed":                   {[]string{strings.Repeat("x", room)}, 1},
		"one unit more":                        {[]string{strings.Repeat("x", room+1)}, 0},
		"two bytes a letter are one unit":      {[]string{strings.Repeat("é", room)}, 1},
		"a letter beyond the basic plane, two": {[]string{strings.Repeat("😀", room/2)}, 1},
		"and no more of them":                  {[]string{strings.Repeat("😀", room/2+1)}, 0},
		"the last reason fits, the first not":  {[]string{"first", strings.Repeat("x", room)}, 1},
		"the first is too long":                {[]string{strings.Repeat("x", room), "second", "third"}, 2},
	} {
		reasons, units := encode(tt.whys...)
		if len(reasons) != tt.kept || units > most {
			t.Errorf("%s: %d reasons in %d units, want %d in at most %d", name, len(reasons), units, tt.kept, most)
		}
		for i, reason := range reasons {
			if want := len(tt.whys) - tt.kept + i; reason.Replicas != want {
				t.Errorf("%s: kept reason %d, want %d", name, reason.Replicas, want)
			}
		}
	}

	many := strings.Split(strings.Repeat("a reason/", 500), "/")
	reasons, units := encode(many...)
	if longest := len(`{"step":"","replicas":500,"why":"a reason"},`); len(reasons) == 0 || units <= most-longest || units > most {
		t.Errorf("of %d reasons %d are kept, in %d units: not as many as fit", len(many), len(reasons), units)
	}
}

func TestANumberThatJSONDoesNotHaveIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := (state.Sample{Arrival: new(math.NaN())}).Encode(); err == nil {
		t.Error("got no error")
	}
}

// TestALaterPollOfAnIntervalTakesOverWhatTheEarlierChanged: the history has one sample for 15 s,
// and a poll that changed nothing hides no change.
func TestALaterPollOfAnIntervalTakesOverWhatTheEarlierChanged(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	type poll struct {
		second   int
		previous *int
		replicas int
	}
	for _, c := range []struct {
		rule  string
		polls []poll
		want  string
	}{
		{"a first decision stays one", []poll{{0, nil, 1}, {5, new(1), 1}}, "nil→1 out [0]"},
		{"what changed nothing takes over what did", []poll{{0, new(1), 4}, {5, new(4), 4}, {10, new(4), 4}}, "1→4 out [0]"},
		{"of two changes the later one counts", []poll{{0, new(1), 4}, {5, new(4), 3}}, "4→3 out [5]"},
		{"there and back, too", []poll{{0, new(1), 4}, {5, new(4), 1}}, "4→1 out [5]"},
		{"the next interval begins afresh", []poll{{0, new(1), 4}, {15, new(4), 4}}, "4→4 none [15]"},
		{"nothing changed, nothing to take over", []poll{{0, new(4), 4}, {5, new(4), 4}}, "4→4 none [5]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var last state.State
			for _, p := range c.polls {
				direction := scaling.None
				if p.previous == nil || *p.previous != p.replicas {
					direction = scaling.Out
				}
				next := state.State{AttemptedAt: start.Add(time.Duration(p.second) * time.Second), Decision: &scaling.Decision{
					Previous: p.previous, Replicas: p.replicas, Direction: direction, Reasons: []scaling.Reason{{Why: fmt.Sprint(p.second)}},
				}}
				next.Record(&last, state.Observation{})
				last = next
			}
			s := last.Sample()
			from, why := "nil", []string{}
			if s.Previous != nil {
				from = fmt.Sprint(*s.Previous)
			}
			for _, r := range s.Reasons {
				why = append(why, r.Why)
			}
			if got := fmt.Sprintf("%s→%d %s %v", from, *s.Replicas, *s.Direction, why); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestASampleKeepsTheWorstPartitionsOfAChange: which partitions were behind when it scaled can be
// told later.
func TestASampleKeepsTheWorstPartitionsOfAChange(t *testing.T) {
	t.Parallel()
	lagOf := func(n int64) *int64 { return &n }
	measured := []changefeed.Partition{
		{Lease: "0", Lag: lagOf(0), Status: changefeed.StatusOK},
		{Lease: "1", Lag: lagOf(5), Status: changefeed.StatusLagging},
		{Lease: "2", Lag: lagOf(9), Status: changefeed.StatusLagging},
		{Lease: "3", Lag: lagOf(1), Status: changefeed.StatusStalled},
		{Lease: "4", Status: changefeed.StatusUnknown},
	}
	many := make([]changefeed.Partition, 20)
	for i := range many {
		many[i] = changefeed.Partition{Lease: fmt.Sprint(i), Lag: lagOf(int64(i)), Status: changefeed.StatusLagging}
	}
	for _, c := range []struct {
		rule       string
		previous   *int
		partitions []changefeed.Partition
		want       string
	}{
		{"worst status first, then the greatest lag", new(1), measured, "4 3 2 1 0"},
		{"at most eight", nil, many, "19 18 17 16 15 14 13 12"},
		{"none where the replicas did not change", new(2), measured, ""},
		{"none where nothing was measured", nil, nil, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Partitions: c.partitions}, Decision: &scaling.Decision{Replicas: 2, Previous: c.previous}}
			var got []string
			for _, p := range s.Sample().Partitions {
				got = append(got, p.Lease)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if s.Sample().Partitions == nil {
				t.Error("it is nil, which means unknown")
			}
		})
	}
}

func TestALongSampleLosesItsPartitionsBeforeItsReasons(t *testing.T) {
	t.Parallel()
	s := state.State{AttemptedAt: polled(), Decision: &scaling.Decision{Reasons: []scaling.Reason{{Why: strings.Repeat("x", 1_400)}}}}
	for i := range 8 {
		s.Lag.Partitions = append(s.Lag.Partitions, changefeed.Partition{Lease: fmt.Sprint(i), Lag: new(int64), Status: changefeed.StatusLagging})
	}
	text, err := s.Sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	var back state.Sample
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Reasons) != 1 || len(back.Partitions) == 0 || len(back.Partitions) == 8 || back.Partitions[0].Lease != "0" {
		t.Errorf("%d reasons, partitions %v", len(back.Reasons), back.Partitions)
	}
	if got := len(s.Sample().Partitions); got != 8 {
		t.Errorf("the sample itself has %d partitions left", got)
	}
}

func TestALaterPollOfAnIntervalKeepsThePartitionsOfTheChange(t *testing.T) {
	t.Parallel()
	first := state.State{
		AttemptedAt: polled().Truncate(state.SampleInterval), Decision: &scaling.Decision{Previous: new(1), Replicas: 4},
		Lag: changefeed.ProcessorLag{Partitions: []changefeed.Partition{{Lease: "7", Lag: new(int64), Status: changefeed.StatusLagging}}},
	}
	first.Record(new(state.State), state.Observation{})
	second := state.State{AttemptedAt: first.AttemptedAt.Add(5 * time.Second), Decision: &scaling.Decision{Previous: new(4), Replicas: 4}}
	second.Record(&first, state.Observation{})
	if got := second.Sample().Partitions; len(got) != 1 || got[0].Lease != "7" {
		t.Errorf("got %v", got)
	}
}

// TestASampleSumsWhatItsPollsStandFor has polls at seconds after a full hour, of a processor with an age.
func TestASampleSumsWhatItsPollsStandFor(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	type poll struct {
		second int
		age    int64
		status changefeed.Status
	}
	const lagging, stalled = changefeed.StatusLagging, changefeed.StatusStalled
	for _, c := range []struct {
		rule      string
		objective time.Duration
		polls     []poll
		over      float64
		charge    float64
		statuses  map[changefeed.Status]float64
	}{
		{"the first poll stands for nothing", 0, []poll{{0, 90, lagging}}, 0, 3, map[changefeed.Status]float64{lagging: 0}},
		{"a poll stands for the time since the one before", 0, []poll{{0, 90, lagging}, {5, 90, lagging}, {10, 90, lagging}}, 10, 9, map[changefeed.Status]float64{lagging: 10}},
		{"each status has its own", 0, []poll{{0, 9, lagging}, {15, 9, lagging}, {20, 61, stalled}, {25, 9, lagging}}, 5, 9, map[changefeed.Status]float64{lagging: 20, stalled: 5}},
		{"without maxChangeAge it is 60 s", 0, []poll{{0, 60, lagging}, {15, 60, lagging}}, 0, 3, map[changefeed.Status]float64{lagging: 15}},
		{"with maxChangeAge that counts", 30 * time.Second, []poll{{0, 31, lagging}, {15, 31, lagging}}, 15, 3, map[changefeed.Status]float64{lagging: 15}},
		{"no poll stands for more than 15 s", 0, []poll{{0, 90, lagging}, {600, 90, lagging}}, 15, 3, map[changefeed.Status]float64{lagging: 15}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var last state.State
			for _, p := range c.polls {
				at := start.Add(time.Duration(p.second) * time.Second)
				lag := changefeed.ProcessorLag{Time: at, Charge: 3, Partitions: []changefeed.Partition{
					{Lease: "0", Lag: new(int64(7)), Age: &p.age, Status: p.status, Owner: "a", LeaseTime: at},
					{Lease: "1", Lag: new(int64(7)), Status: changefeed.StatusOK, Owner: "b", LeaseTime: at.Add(-2 * time.Minute)},
				}}
				next := state.State{AttemptedAt: at, Lag: lag}
				next.Record(&last, state.Observation{LeaseExpiration: time.Minute, Objective: c.objective})
				last = next
			}
			s := last.Sample()
			if *s.LiveOwners != 1 || *s.RequestCharge != c.charge || *s.OverObjective != c.over || !reflect.DeepEqual(s.StatusSeconds, c.statuses) {
				t.Errorf("%d owners, %g RU, %g s over, %v; want 1, %g, %g, %v", *s.LiveOwners, *s.RequestCharge, *s.OverObjective, s.StatusSeconds, c.charge, c.over, c.statuses)
			}
		})
	}
}

func TestASampleOfAnEarlierReleaseSaysWhatItDidNotRecord(t *testing.T) {
	t.Parallel()
	var s state.Sample
	if err := json.Unmarshal([]byte(`{"time":"2026-01-02T03:04:05Z","lag":412,"status":"lagging","complete":true}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.LiveOwners != nil || s.RequestCharge != nil || s.OverObjective != nil || s.StatusSeconds != nil {
		t.Errorf("%+v has what was not recorded", s)
	}
	unread := state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Error: "refused"}}
	unread.Record(new(state.State), state.Observation{})
	if got := unread.Sample(); got.LiveOwners != nil || got.RequestCharge == nil {
		t.Errorf("%+v: the leases are not known, the charge is", got)
	}
}

// TestAnHourOfPollsOfFiveSecondsFitsIntoARow has samples as long as they get: all statuses in each, and more
// reasons than there is room for. A row of a table has 1 MiB, and a text takes two bytes a unit.
func TestAnHourOfPollsOfFiveSecondsFitsIntoARow(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	units, statuses := 0, changefeed.Statuses()
	var last state.State
	for second := 0; second < 3600; second += 5 {
		next := state.State{AttemptedAt: start.Add(time.Duration(second)*time.Second + 123*time.Millisecond), Lag: changefeed.ProcessorLag{Charge: 1234.56}}
		for i := range 100 {
			status := statuses[(second/5+i)%len(statuses)]
			next.Lag.Partitions = append(next.Lag.Partitions, changefeed.Partition{Lease: fmt.Sprint(i), Lag: new(int64(math.MaxInt64 / 200)), Age: new(int64(99_999)), Status: status})
		}
		next.Decision = &scaling.Decision{Replicas: second % 7, Previous: new(second % 3), MetricValue: math.MaxInt64}
		for range 20 {
			next.Decision.Reasons = append(next.Decision.Reasons, scaling.Reason{Step: "threshold", Replicas: 5, Why: strings.Repeat("why ", 40)})
		}
		next.Record(&last, state.Observation{})
		if last.Recorded != nil && !last.Recorded.Time.Truncate(state.SampleInterval).Equal(next.Recorded.Time.Truncate(state.SampleInterval)) {
			text, err := last.Recorded.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), `"statusSeconds":{`) {
				t.Fatalf("the sums were left out of %s", text)
			}
			units += len(utf16.Encode([]rune(string(text))))
		}
		last = next
	}
	if units < 400_000 || 2*units > 1<<20-10_000 { // the rest is the names of the properties
		t.Errorf("an hour has %d units", units)
	}
}

func TestAStatusIsSinceTheFirstPollThatSawIt(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := state.State{Processor: "orders"}
	for _, c := range []struct {
		minute int
		status changefeed.Status
		since  int // minute
	}{
		{0, changefeed.StatusOK, 0}, {1, changefeed.StatusOK, 0}, {2, changefeed.StatusStalled, 2}, {3, changefeed.StatusStalled, 2}, {4, changefeed.StatusOK, 4},
	} {
		last := s
		s.AttemptedAt = noon.Add(time.Duration(c.minute) * time.Minute)
		s.Lag.Partitions = []changefeed.Partition{{Lease: "0", Lag: new(int64(1)), Status: c.status}}
		s.Record(&last, state.Observation{})
		if want := noon.Add(time.Duration(c.since) * time.Minute); !s.Since.Equal(want) {
			t.Errorf("%s at minute %d is since %s, want %s", c.status, c.minute, s.Since, want)
		}
	}
	s.Since = time.Time{} // of an earlier release
	last := s
	s.Record(&last, state.Observation{})
	if !s.Since.IsZero() {
		t.Errorf("an earlier release did not say since when, and it is %s", s.Since)
	}
}
