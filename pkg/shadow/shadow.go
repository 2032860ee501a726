// Package shadow compares what ran, measured by the leases, with what a policy would have run,
// which is modelled. A team that scales with KEDA sees what feedscale would do before it acts
// (docs/beside-keda.md). Measured and modelled values are in separate fields.
//
// It is pure: hours, samples and policies come in as values. Start with Collector and, for the
// model, NewModel.
//
// The package is internal to the program: its API may change in any release.
package shadow

import (
	"cmp"
	_ "embed" // for the schema
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

//go:embed report.schema.json
var schema string

// Schema is the JSON Schema (2020-12) of a Report.
func Schema() string { return schema }

// LowerBound is the note on counting replicas by their leases.
const LowerBound = "replicas are counted by the leases, which is a lower bound: a replica that owns no lease is not seen, " +
	"and a group counts, in each hour, the member with the most"

// Report is what ran between two times. Its JSON always has every field; null is unknown.
type Report struct {
	Note       string      `json:"note"`  // LowerBound
	Since      time.Time   `json:"since"` // full hour
	Until      time.Time   `json:"until"`
	Processors []Processor `json:"processors"` // in the order of the configuration
	Groups     []Group     `json:"groups"`
	Total      Measurement `json:"total"`    // a group counts once
	NextPage   *int        `json:"nextPage"` // of the API; null on the last page and for the command
}

// Measurement is the sum of what the polls of some time measured.
type Measurement struct {
	RecordedSeconds float64  `json:"recordedSeconds"` // that the polls cover
	GapSeconds      float64  `json:"gapSeconds"`      // without a poll
	OwnersKnown     float64  `json:"ownersKnownSeconds"`
	ReplicaHours    *float64 `json:"replicaHours"` // in ownersKnownSeconds; null if the owners were never known
	ScaleActions    int      `json:"scaleActions"` // changes of the number of live owners
	OverObjective   float64  `json:"secondsOverObjective"`
	WorstAge        *int64   `json:"worstAgeSeconds"` // null if nothing was pending
	RequestUnits    float64  `json:"requestUnits"`    // spent on polling

	StatusSeconds map[changefeed.Status]float64 `json:"statusSeconds"`
}

// Processor is the measured values of a processor, and its model.
type Processor struct {
	Name  string  `json:"name"`
	Group *string `json:"group"` // its group; null if it is in none
	Measurement
	Gaps  []Gap   `json:"gaps"`  // oldest first
	Error *string `json:"error"` // why its history cannot be read
	Model *Model  `json:"model"` // null if no policy was asked for
}

// Gap is a run of hours that are each recorded by less than half.
type Gap struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Group is what the shared deployment of several processors ran.
type Group struct {
	Name         string   `json:"name"`
	ReplicaHours *float64 `json:"replicaHours"`
	ScaleActions int      `json:"scaleActions"`
}

// Collector builds a Report, one processor after the other.
type Collector struct {
	report Report             // its groups have names alone
	groups map[string][]Group // for each hour of the report, the greatest values of the members
}

// NewCollector begins a Report at the full hour of since.
func NewCollector(since, until time.Time) *Collector {
	return &Collector{groups: make(map[string][]Group), report: Report{
		Note: LowerBound, Since: since.UTC().Truncate(time.Hour), Until: until.UTC(), Processors: []Processor{}, Groups: []Group{},
	}}
}

// Add adds a processor with its hours, oldest first, including the current one. err says why they
// cannot be read; nil if they can.
func (c *Collector) Add(name, group string, hours []state.Summary, err error) {
	since, until := c.report.Since, c.report.Until
	p := Processor{Name: name, Gaps: []Gap{}, Measurement: Measurement{StatusSeconds: make(map[changefeed.Status]float64)}}
	if err != nil {
		p.Error = new(err.Error())
	}
	if group != "" {
		p.Group = &group
		if c.groups[group] == nil {
			c.groups[group] = make([]Group, until.Sub(since)/time.Hour+1)
			c.report.Groups = append(c.report.Groups, Group{Name: group})
		}
	}
	recorded := make(map[time.Time]float64, len(hours))
	for _, h := range hours {
		if h.Hour.Before(since) || !h.Hour.Before(until) {
			continue
		}
		recorded[h.Hour.UTC()] = h.Seconds
		m := measured(h)
		if p.add(m); group != "" {
			c.groups[group][h.Hour.Sub(since)/time.Hour].raise(m.ReplicaHours, m.ScaleActions)
		}
	}
	p.GapSeconds = max(0, until.Sub(since).Seconds()-p.RecordedSeconds)
	for hour := since; hour.Before(until); hour = hour.Add(time.Hour) {
		gap, last := Gap{hour, hour.Add(time.Hour)}, len(p.Gaps)-1
		if until.Before(gap.Until) {
			gap.Until = until
		}
		switch {
		case recorded[hour] >= gap.Until.Sub(hour).Seconds()/2:
		case last >= 0 && p.Gaps[last].Until.Equal(hour):
			p.Gaps[last].Until = gap.Until
		default:
			p.Gaps = append(p.Gaps, gap)
		}
	}
	c.report.Processors = append(c.report.Processors, p)
}

func measured(h state.Summary) Measurement {
	m := Measurement{
		RecordedSeconds: h.Seconds, OwnersKnown: h.OwnersKnown, ScaleActions: h.Changes, OverObjective: h.OverObjective,
		WorstAge: h.WorstAge, RequestUnits: h.RequestCharge, StatusSeconds: h.StatusSeconds,
	}
	if h.OwnersKnown > 0 {
		m.ReplicaHours = new(h.ReplicaSeconds / time.Hour.Seconds())
	}
	return m
}

// add adds the values of another time or another processor.
func (m *Measurement) add(o Measurement) {
	m.RecordedSeconds += o.RecordedSeconds
	m.GapSeconds += o.GapSeconds
	m.OwnersKnown += o.OwnersKnown
	m.ReplicaHours = sum(m.ReplicaHours, o.ReplicaHours)
	m.ScaleActions += o.ScaleActions
	m.OverObjective += o.OverObjective
	m.WorstAge = changefeed.Greater(m.WorstAge, o.WorstAge)
	m.RequestUnits += o.RequestUnits
	for status, seconds := range o.StatusSeconds {
		m.StatusSeconds[status] += seconds
	}
}

// raise takes in the values of another member.
func (g *Group) raise(replicaHours *float64, actions int) {
	g.ReplicaHours, g.ScaleActions = changefeed.Greater(g.ReplicaHours, replicaHours), max(g.ScaleActions, actions)
}

// sum adds two numbers; nil is unknown and does not count.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// Report returns the Report of the processors added so far.
func (c *Collector) Report() Report {
	r := c.report
	r.Groups = slices.Clone(r.Groups)
	for i := range r.Groups {
		g := &r.Groups[i]
		for _, hour := range c.groups[g.Name] {
			g.ReplicaHours, g.ScaleActions = sum(g.ReplicaHours, hour.ReplicaHours), g.ScaleActions+hour.ScaleActions
		}
	}
	r.addUp()
	return r
}

// Join adds another page to r. A group with members on two pages counts with the higher values of
// both.
func (r *Report) Join(page Report) {
	if r.Note == "" {
		*r = page
		return
	}
	r.Processors, r.NextPage = append(r.Processors, page.Processors...), page.NextPage
	for _, g := range page.Groups {
		at := slices.IndexFunc(r.Groups, func(of Group) bool { return of.Name == g.Name })
		if at < 0 {
			r.Groups = append(r.Groups, g)
			continue
		}
		r.Groups[at].raise(g.ReplicaHours, g.ScaleActions)
	}
	r.addUp()
}

// addUp makes the total of all processors. The values of a group replace those of its members.
func (r *Report) addUp() {
	r.Total = Measurement{StatusSeconds: make(map[changefeed.Status]float64)}
	for _, p := range r.Processors {
		if p.Group != nil {
			p.ReplicaHours, p.ScaleActions = nil, 0
		}
		r.Total.add(p.Measurement)
	}
	for _, g := range r.Groups {
		r.Total.add(Measurement{ReplicaHours: g.ReplicaHours, ScaleActions: g.ScaleActions})
	}
}
