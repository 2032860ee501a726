package discover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Report is the JSON of `feedscale leases`. Every field is always present; null is unknown.
type Report struct {
	LeaseContainer string      `json:"leaseContainer"`
	Account        string      `json:"account"`
	RequestCharge  float64     `json:"requestCharge"`
	Requests       int         `json:"requests"`
	Processors     []Processor `json:"processors"`
}

// Processor is the leases with one prefix.
type Processor struct {
	Prefix        string              `json:"prefix"`
	ProcessorName *string             `json:"processorName"` // null, as accountHost, if the ids do not separate the two
	AccountHost   *string             `json:"accountHost"`
	Head          string              `json:"head"` // both, joined
	DatabaseID    *string             `json:"databaseId"`
	ContainerID   *string             `json:"containerId"`
	Monitored     string              `json:"monitored"` // the container by its names, or as the ids have it
	Formats       []changefeed.Format `json:"formats"`
	Modes         []string            `json:"modes"`
	Partitions    int                 `json:"partitions"`
	Owners        []Owner             `json:"owners"`
	NewestSeconds *int64              `json:"newestRenewalSeconds"` // since the latest renewal of a lease
	OldestSeconds *int64              `json:"oldestRenewalSeconds"` // since the earliest renewal of a lease
	Unreadable    []UnreadableLease   `json:"unreadable"`
	Note          *string             `json:"note"`  // what the user has to do
	Error         *string             `json:"error"` // what could not be looked up
	Entry         *Entry              `json:"entry"` // null if it would be incomplete, or equals another
}

type Owner struct {
	Name           string `json:"name"`
	Partitions     int    `json:"partitions"`
	RenewedSeconds *int64 `json:"renewedSeconds"`
	Live           bool   `json:"live"`
}

type UnreadableLease struct {
	Lease string `json:"lease"` // the document's id
	Error string `json:"error"`
}

// leaseExpiration is the SDKs' default: there is no configuration to say another.
const leaseExpiration = 60 * time.Second

func (s survey) report(o origin, now time.Time) Processor {
	r := Processor{
		Prefix: o.Prefix, Head: o.head(), Monitored: o.monitored(),
		Formats: []changefeed.Format{}, Modes: []string{},
		Partitions: len(o.Leases), Owners: []Owner{}, Unreadable: []UnreadableLease{},
	}
	if name, host, ok := changefeed.SplitHead(r.Head, s.connection.Host); ok {
		r.ProcessorName, r.AccountHost = &name, &host
	}
	if o.container != (cosmos.Container{}) {
		r.DatabaseID, r.ContainerID = &o.container.Database, &o.container.ID
	}
	r.sumUp(o.Leases, now)
	if o.err != nil {
		r.Error = new(o.err.Error())
		return r
	}
	s.propose(&r, o)
	return r
}

// modeNames are the names of the modes in a Report.
var modeNames = map[changefeed.Mode]string{changefeed.Incremental: "incremental", changefeed.FullFidelity: "all versions and deletes"}

// sumUp adds the formats and modes, the owners, by name, the renewals, and what cannot be read.
func (p *Processor) sumUp(leases []changefeed.LeaseDocument, now time.Time) {
	owners, formats, modes := make(map[string]Owner), make(map[changefeed.Format]bool), make(map[string]bool)
	for _, l := range leases {
		if l.Err != nil {
			p.Unreadable = append(p.Unreadable, UnreadableLease{l.ID, l.Err.Error()})
			continue
		}
		formats[l.Format], modes[modeNames[l.Mode]] = true, true
		o := owners[l.Owner]
		o.Name, o.Partitions, o.Live = l.Owner, o.Partitions+1, o.Live || now.Sub(l.Time) <= leaseExpiration
		if !l.Time.IsZero() {
			renewed := max(0, int64(now.Sub(l.Time).Seconds())) // clocks differ
			p.NewestSeconds = least(p.NewestSeconds, renewed)
			p.OldestSeconds = new(max(renewed, *cmp.Or(p.OldestSeconds, &renewed)))
			o.RenewedSeconds = least(o.RenewedSeconds, renewed)
		}
		owners[l.Owner] = o
	}
	p.Formats, p.Modes = slices.AppendSeq(p.Formats, maps.Keys(formats)), slices.AppendSeq(p.Modes, maps.Keys(modes))
	slices.Sort(p.Formats)
	slices.Sort(p.Modes)
	delete(owners, "") // nobody
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		p.Owners = append(p.Owners, owners[name])
	}
}

// least returns the lower of two numbers; nil is none.
func least(a *int64, b int64) *int64 { return new(min(b, *cmp.Or(a, &b))) }

// Complete reports whether everything could be read and looked up.
func (r Report) Complete() bool {
	return !slices.ContainsFunc(r.Processors, func(p Processor) bool { return p.Error != nil || len(p.Unreadable) > 0 })
}
