package shadow_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hour has two live owners and is recorded for some seconds.
func hour(offset int, seconds, replicaSeconds float64) state.Summary {
	return state.Summary{
		Hour: noon.Add(time.Duration(offset) * time.Hour), Seconds: seconds, OwnersKnown: seconds, ReplicaSeconds: replicaSeconds, Changes: 1,
		OverObjective: 15, WorstAge: new(int64(100 + offset)), RequestCharge: 10, StatusSeconds: map[changefeed.Status]float64{changefeed.StatusStalled: 30},
	}
}

func TestGapsAreShownAndNotFilled(t *testing.T) {
	t.Parallel()
	c := shadow.NewCollector(noon.Add(30*time.Minute), noon.Add(5*time.Hour+30*time.Minute))
	c.Add("orders", "", []state.Summary{hour(-1, 3600, 3600), hour(0, 3600, 7200), hour(3, 1000, 1000), hour(4, 3600, 0), hour(5, 1200, 1200)}, nil)
	p := c.Report().Processors[0]
	if len(p.Gaps) != 1 || !p.Gaps[0].Since.Equal(noon.Add(time.Hour)) || !p.Gaps[0].Until.Equal(noon.Add(4*time.Hour)) {
		t.Errorf("gaps %v, want 13:00 to 16:00", p.Gaps)
	}
	if want := 5.5*3600 - 9400; p.GapSeconds != want || p.RecordedSeconds != 9400 {
		t.Errorf("a gap of %g s and %g s recorded, want %g and 9400", p.GapSeconds, p.RecordedSeconds, want)
	}
	if *p.ReplicaHours != 9400.0/3600 || p.ScaleActions != 4 || p.OverObjective != 60 || *p.WorstAge != 105 || p.RequestUnits != 40 || p.StatusSeconds[changefeed.StatusStalled] != 120 {
		t.Errorf("got %+v", p.Measurement)
	}
}

func TestAGroupCountsAnOwnerOnce(t *testing.T) {
	t.Parallel()
	add := func(c *shadow.Collector, name, group string, hours ...state.Summary) { c.Add(name, group, hours, nil) }
	all := shadow.NewCollector(noon, noon.Add(2*time.Hour))
	add(all, "a", "shop", hour(0, 3600, 7200), hour(1, 3600, 3600))
	add(all, "b", "shop", hour(0, 3600, 3600), hour(1, 3600, 10800))
	add(all, "c", "", hour(0, 3600, 3600))
	r := all.Report()
	if len(r.Groups) != 1 || *r.Groups[0].ReplicaHours != 5 || r.Groups[0].ScaleActions != 2 {
		t.Errorf("groups %+v, want shop with 5 replica-hours and 2 actions", r.Groups)
	}
	if *r.Total.ReplicaHours != 6 || r.Total.ScaleActions != 3 || r.Total.RequestUnits != 50 {
		t.Errorf("total %+v, want 6 replica-hours, 3 actions and 50 RU", r.Total)
	}
	var joined shadow.Report
	for _, name := range []string{"a", "b"} {
		page := shadow.NewCollector(noon, noon.Add(2*time.Hour))
		if add(page, name, "shop", hour(0, 3600, 7200)); name == "b" {
			add(page, "c", "", hour(0, 3600, 3600))
		}
		joined.Join(page.Report())
	}
	if len(joined.Processors) != 3 || len(joined.Groups) != 1 || *joined.Total.ReplicaHours != 3 {
		t.Errorf("two pages make %+v, want 3 replica-hours", joined.Total)
	}
}

func TestOwnersThatWereNeverKnownAreNull(t *testing.T) {
	t.Parallel()
	c := shadow.NewCollector(noon, noon.Add(time.Hour))
	c.Add("orders", "shop", []state.Summary{{Hour: noon, Seconds: 3600}}, nil)
	r := c.Report()
	if r.Processors[0].ReplicaHours != nil || r.Groups[0].ReplicaHours != nil || r.Total.ReplicaHours != nil {
		t.Errorf("got %+v", r)
	}
}

// TestTheReportIsWhatRan compares the sums with a record of every second: with restarts, gaps, and
// polls that could not read the leases.
func TestTheReportIsWhatRan(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	const day = 24 * 3600
	var owners [day]int
	var over [day]bool
	count, late := 3, false
	for second := range day {
		if random.IntN(1200) == 0 {
			count = random.IntN(9)
		}
		if random.IntN(1800) == 0 {
			late = !late
		}
		owners[second], over[second] = count, late
	}
	var last state.State
	var hours []state.Summary
	ran, wasOver, gap, episodes, restarts := 0, 0, 0, 1, 0
	for second, before := 0, 0; second < day; second += 15 {
		if second/3600 == 7 || second/3600 == 8 { // no poll in these hours
			gap, before = gap+15, second+15
			continue
		}
		// a restart loses a poll
		if second-int(last.AttemptedAt.Sub(noon).Seconds()) == 15 && random.IntN(100) == 0 {
			restarts++
			continue
		}
		at := noon.Add(time.Duration(second) * time.Second)
		age := int64(5)
		if over[second] {
			age = 90
		}
		lag := changefeed.ProcessorLag{Time: at, Charge: 1}
		for i := range max(1, owners[second]) {
			p := changefeed.Partition{Lease: string(rune('a' + i)), Status: changefeed.StatusLagging, Lag: new(int64(1)), Age: &age}
			if i < owners[second] {
				p.Owner, p.LeaseTime = p.Lease, at
			}
			lag.Partitions = append(lag.Partitions, p)
		}
		next := state.State{AttemptedAt: at, Lag: lag}
		next.Record(&last, state.Observation{LeaseExpiration: time.Minute, Due: last.AttemptedAt.Add(15 * time.Second)})
		if next.Finished != nil {
			hours = append(hours, *next.Finished)
		}
		since := int(last.AttemptedAt.Sub(noon).Seconds())
		if last = next; second == before {
			continue // the first poll, and the first after the gap
		}
		for s := since; s < second; s++ {
			ran += owners[s]
			if over[s] {
				wasOver++
			}
		}
		if over[second] != over[since] {
			episodes++
		}
	}
	c := shadow.NewCollector(noon, noon.Add(day*time.Second))
	c.Add("orders", "", append(hours, *last.Hour), nil)
	p := c.Report().Processors[0]
	if restarts < 10 {
		t.Errorf("%d restarts", restarts)
	}
	if want := float64(ran) / 3600; math.Abs(*p.ReplicaHours/want-1) > 0.01 {
		t.Errorf("%.2f replica-hours, want %.2f", *p.ReplicaHours, want)
	}
	if math.Abs(p.OverObjective-float64(wasOver)) > float64(15*(episodes+restarts)) {
		t.Errorf("%g s over the objective, want %d within a poll for each of %d times", p.OverObjective, wasOver, episodes)
	}
	if math.Abs(p.GapSeconds-float64(gap)) > 60 || len(p.Gaps) != 1 {
		t.Errorf("a gap of %g s, %v, want %d s", p.GapSeconds, p.Gaps, gap)
	}
}

// steady is a day of two owners that keep up with 20 transactions a second.
func steady() []state.Sample {
	var samples []state.Sample
	for at := noon; at.Before(noon.Add(24 * time.Hour)); at = at.Add(15 * time.Second) {
		samples = append(samples, state.Sample{
			Time: at, Lag: new(int64(300)), Complete: true, PartitionCount: new(4), Arrival: new(20.0), DrainPerReplica: new(25.0),
			LiveOwners: new(2), StatusSeconds: map[changefeed.Status]float64{changefeed.StatusLagging: 15},
		})
	}
	return samples
}

func TestTheModelIsCheckedAgainstWhatRan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		ran      simulate.Scaler
		low, top float64
	}{
		{"the count that ran is right within 1 %", simulate.FixedCount(2), -1, 1},
		{"another count is off", simulate.FixedCount(3), 49, 51},
		{"no more replicas count than there are leases", simulate.FixedCount(9), 99, 101},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			m := shadow.NewModel(shadow.Question{Name: "orders", Samples: steady(), Ran: c.ran, Policies: []simulate.Scaler{simulate.KEDA()}})
			if m.Error != nil || m.ErrorPercent == nil || *m.ErrorPercent < c.low || *m.ErrorPercent > c.top || !strings.HasPrefix(*m.Ran, "fixed:") {
				t.Errorf("got %s", asJSON(t, m))
			}
			if len(m.Policies) != 1 || m.Policies[0].Policy != "keda" || m.Policies[0].ReplicaHours <= 0 || !m.ThroughputMeasured || m.Throughput != 25 {
				t.Errorf("got %s", asJSON(t, m))
			}
		})
	}
}

// TestTheStartUpThatWasSeenIsUsedWhereReplicasFollowedTheDecisions has scale-outs whose replicas
// own leases after 45 s: three or fewer, and one that a later decision overtakes.
func TestTheStartUpThatWasSeenIsUsedWhereReplicasFollowedTheDecisions(t *testing.T) {
	t.Parallel()
	record := func(starts int) []state.Sample {
		samples := steady()
		for start := range starts {
			at := 1000 * (start + 1)
			samples[at].Previous, samples[at].Replicas = new(2), new(4)
			for i := at + 3; i < at+500; i++ {
				samples[i].LiveOwners = new(4)
			}
		}
		samples[4500].Previous, samples[4500].Replicas = new(2), new(9)
		samples[4501].Previous, samples[4501].Replicas = new(9), new(2)
		return samples
	}
	own := simulate.Feedscale("own", scaling.Policy{}, 15*time.Second)
	for _, c := range []struct {
		rule     string
		starts   int
		ran      simulate.Scaler
		seconds  float64
		measured bool
	}{
		{"own decisions, and three scale-outs", 3, own, 45, true},
		{"own decisions, and two", 2, own, 30, false},
		{"somebody else scaled", 3, simulate.FixedCount(2), 30, false},
	} {
		m := shadow.NewModel(shadow.Question{Name: "orders", Samples: record(c.starts), Ran: c.ran})
		if m.StartUpSeconds != c.seconds || m.StartUpMeasured != c.measured {
			t.Errorf("%s: %g s, measured %t; want %g, %t", c.rule, m.StartUpSeconds, m.StartUpMeasured, c.seconds, c.measured)
		}
	}
}

func TestAModelWithoutWhatRanIsUnchecked(t *testing.T) {
	t.Parallel()
	if m := shadow.NewModel(shadow.Question{Name: "orders", Samples: steady()}); m.Ran != nil || m.ErrorPercent != nil {
		t.Errorf("got %s", asJSON(t, m))
	}
	if m := shadow.NewModel(shadow.Question{Name: "orders"}); m.Error == nil || !strings.Contains(*m.Error, "record a longer time") {
		t.Errorf("got %s", asJSON(t, m))
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheSchemaAcceptsEveryReport(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(shadow.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	full := shadow.NewCollector(noon, noon.Add(2*time.Hour))
	full.Add("orders", "shop", []state.Summary{hour(0, 3600, 7200)}, errors.New("row 7 cannot be read"))
	modelled := full.Report()
	modelled.Processors[0].Model = shadow.NewModel(shadow.Question{Name: "orders", Samples: steady(), Ran: simulate.FixedCount(2), Policies: []simulate.Scaler{simulate.KEDA()}})
	failed := full.Report()
	failed.Processors[0].Model = shadow.NewModel(shadow.Question{Name: "orders"})
	for name, r := range map[string]shadow.Report{"empty": shadow.NewCollector(noon, noon).Report(), "modelled": modelled, "not modelled": full.Report(), "refused": failed} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(asJSON(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	value, _ := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(asJSON(t, full.Report()), `"gaps"`, `"holes"`, 1)))
	if schema.Validate(value) == nil {
		t.Error("it accepts a report without gaps")
	}
}
