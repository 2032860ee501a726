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
	Total      Measured    `json:"total"` // a group counts once
	// of the API; null on the last page and in the command's output
	NextPage *int `json:"nextPage"`
}

// Measured is the sum of what the polls of some time measured.
type Measured struct {
	RecordedSeconds float64 `json:"recordedSeconds"` // seconds that the polls cover
	GapSeconds      float64 `json:"gapSeconds"`      // seconds without a poll
	OwnersKnown     float64 `json:"ownersKnownSeconds"`
	// in ownersKnownSeconds; null if the owners were never known
	ReplicaHours  *float64 `json:"replicaHours"`
	ScaleActions  int      `json:"scaleActions"` // changes of the number of live owners
	OverObjective float64  `json:"secondsOverObjective"`
	WorstAge      *int64   `json:"worstAgeSeconds"` // null if nothing was pending
	RequestUnits  float64  `json:"requestUnits"`    // spent on polling

	StatusSeconds map[changefeed.Status]float64 `json:"statusSeconds"`
}

// Processor is the measured values of a processor, and its model.
type Processor struct {
	Name  string  `json:"name"`
	Group *string `json:"group"` // its group; null if it is in none
	Measured
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
	report Report
	groups map[string][]groupHour // one entry for each hour of the report
	names  []string               // of the groups, in the order of their first members
}

// groupHour has the greatest values of a group's members in an hour.
type groupHour struct {
	replicaSeconds float64
	known          bool
	changes        int
}

// NewCollector begins a Report at the full hour of since.
func NewCollector(since, until time.Time) *Collector {
	return &Collector{groups: make(map[string][]groupHour), report: Report{
		Note: LowerBound, Since: since.UTC().Truncate(time.Hour), Until: until.UTC(), Processors: []Processor{}, Groups: []Group{},
	}}
}

// Span returns the time of the Report.
func (c *Collector) Span() (since, until time.Time) { return c.report.Since, c.report.Until }

// Add adds a processor with its hours, oldest first, including the current one. err says why they
// cannot be read; nil if they can.
func (c *Collector) Add(name, group string, hours []state.Summary, err error) {
	p := Processor{Name: name, Gaps: []Gap{}, Measured: Measured{StatusSeconds: make(map[changefeed.Status]float64)}}
	if err != nil {
		p.Error = new(err.Error())
	}
	if group != "" {
		p.Group = &group
		if c.groups[group] == nil {
			c.groups[group] = make([]groupHour, c.report.Until.Sub(c.report.Since)/time.Hour+1)
			c.names = append(c.names, group)
		}
	}
	recorded := make(map[time.Time]float64, len(hours))
	for _, h := range hours {
		if h.Hour.Before(c.report.Since) || !h.Hour.Before(c.report.Until) {
			continue
		}
		recorded[h.Hour.UTC()] = h.Seconds
		p.add(measured(h))
		if group == "" {
			continue
		}
		of := &c.groups[group][h.Hour.Sub(c.report.Since)/time.Hour]
		of.replicaSeconds, of.changes = max(of.replicaSeconds, h.ReplicaSeconds), max(of.changes, h.Changes)
		of.known = of.known || h.OwnersKnown > 0
	}
	p.GapSeconds = max(0, c.report.Until.Sub(c.report.Since).Seconds()-p.RecordedSeconds)
	for hour := c.report.Since; hour.Before(c.report.Until); hour = hour.Add(time.Hour) {
		end := hour.Add(time.Hour)
		if c.report.Until.Before(end) {
			end = c.report.Until
		}
		last := len(p.Gaps) - 1
		switch {
		case recorded[hour] >= end.Sub(hour).Seconds()/2:
		case last >= 0 && p.Gaps[last].Until.Equal(hour):
			p.Gaps[last].Until = end
		default:
			p.Gaps = append(p.Gaps, Gap{hour, end})
		}
	}
	c.report.Processors = append(c.report.Processors, p)
}

func measured(h state.Summary) Measured {
	m := Measured{
		RecordedSeconds: h.Seconds, OwnersKnown: h.OwnersKnown, ScaleActions: h.Changes, OverObjective: h.OverObjective,
		WorstAge: h.WorstAge, RequestUnits: h.RequestCharge, StatusSeconds: h.StatusSeconds,
	}
	if h.OwnersKnown > 0 {
		m.ReplicaHours = new(h.ReplicaSeconds / time.Hour.Seconds())
	}
	return m
}

// add adds the values of another time or another processor.
func (m *Measured) add(o Measured) {
	m.RecordedSeconds += o.RecordedSeconds
	m.GapSeconds += o.GapSeconds
	m.OwnersKnown += o.OwnersKnown
	m.ReplicaHours = sum(m.ReplicaHours, o.ReplicaHours)
	m.ScaleActions += o.ScaleActions
	m.OverObjective += o.OverObjective
	if o.WorstAge != nil && (m.WorstAge == nil || *o.WorstAge > *m.WorstAge) {
		m.WorstAge = o.WorstAge
	}
	m.RequestUnits += o.RequestUnits
	for status, seconds := range o.StatusSeconds {
		m.StatusSeconds[status] += seconds
	}
}

// sum adds two numbers; nil is unknown and does not count.
func sum(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// Report returns the Report of the processors added so far.
func (c *Collector) Report() Report {
	r := c.report
	for _, name := range c.names {
		g := Group{Name: name}
		for _, hour := range c.groups[name] {
			g.ScaleActions += hour.changes
			if hour.known {
				g.ReplicaHours = sum(g.ReplicaHours, new(hour.replicaSeconds/time.Hour.Seconds()))
			}
		}
		r.Groups = append(r.Groups, g)
	}
	r.Total = total(r)
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
		of := &r.Groups[at]
		of.ScaleActions = max(of.ScaleActions, g.ScaleActions)
		if g.ReplicaHours != nil && (of.ReplicaHours == nil || *g.ReplicaHours > *of.ReplicaHours) {
			of.ReplicaHours = g.ReplicaHours
		}
	}
	r.Total = total(*r)
}

// total adds up all processors. The values of a group replace those of its members.
func total(r Report) Measured {
	all := Measured{StatusSeconds: make(map[changefeed.Status]float64)}
	for _, p := range r.Processors {
		m := p.Measured
		if p.Group != nil {
			m.ReplicaHours, m.ScaleActions = nil, 0
		}
		all.add(m)
	}
	for _, g := range r.Groups {
		all.ReplicaHours, all.ScaleActions = sum(all.ReplicaHours, g.ReplicaHours), all.ScaleActions+g.ScaleActions
	}
	return all
}
