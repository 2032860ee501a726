package state_test

import (
	"encoding/json"
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
				`"arrivalPerSecond":0,"drainPerReplica":2.5,"metricValue":9223372036854775807,"active":true,"desiredReplicas":5,"previousReplicas":3,"direction":"out",` +
				`"reasons":[{"step":"threshold","replicas":5,"why":"lag 412 at 100 per replica"}]}`,
		},
		"a poll that could not measure, nor decide": {
			state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Time: polled(), Error: "no leases"}},
			`{"time":"2026-01-02T03:04:05Z","lag":null,"changeAgeSeconds":null,"complete":false,"status":"unknown","partitionCount":null,"partitionsWithLag":null,` +
				`"arrivalPerSecond":null,"drainPerReplica":null,"metricValue":null,"active":null,"desiredReplicas":null,"previousReplicas":null,"direction":null,"reasons":[]}`,
		},
		"a poll that found the partitions, and could measure none of them": {
			state.State{AttemptedAt: polled(), Lag: changefeed.ProcessorLag{Time: polled(), Partitions: []changefeed.Partition{{Lease: "0", Status: changefeed.StatusUnknown, Error: "429"}}}},
			`{"time":"2026-01-02T03:04:05Z","lag":null,"changeAgeSeconds":null,"complete":false,"status":"unknown","partitionCount":1,"partitionsWithLag":null,` +
				`"arrivalPerSecond":null,"drainPerReplica":null,"metricValue":null,"active":null,"desiredReplicas":null,"previousReplicas":null,"direction":null,"reasons":[]}`,
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
