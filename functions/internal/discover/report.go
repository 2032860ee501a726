package discover

import (
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
	Unreadable    []Unreadable        `json:"unreadable"`
	Note          *string             `json:"note"`  // what the user has to do
	Error         *string             `json:"error"` // what could not be looked up
	Entry         *Entry              `json:"entry"` // null if it is incomplete, or equals another

	Draft *Entry `json:"-"` // an incomplete Entry; nil if there is nothing to fill in
}

type Owner struct {
	Name           string `json:"name"`
	Partitions     int    `json:"partitions"`
	RenewedSeconds *int64 `json:"renewedSeconds"`
	Live           bool   `json:"live"`
}

type Unreadable struct {
	Lease string `json:"lease"` // the document's id
	Error string `json:"error"`
}

// leaseExpiration is the SDKs' default: there is no configuration to say another.
const leaseExpiration = 60 * time.Second

func (s survey) report(o origin, now time.Time) Processor {
	r := Processor{
		Prefix: o.Prefix, Head: o.head(), Monitored: o.monitored(),
		Formats: append([]changefeed.Format{}, o.Formats...), Modes: []string{},
		Partitions: len(o.Leases), Owners: []Owner{}, Unreadable: []Unreadable{},
	}
	if name, host, ok := changefeed.SplitHead(r.Head, s.connection.Host); ok {
		r.ProcessorName, r.AccountHost = &name, &host
	}
	if o.container != (cosmos.Container{}) {
		r.DatabaseID, r.ContainerID = &o.container.Database, &o.container.ID
	}
	for _, m := range o.Modes {
		r.Modes = append(r.Modes, modeName(m))
	}
	r.sumUp(o.Leases, now)
	if o.err != nil {
		text := o.err.Error()
		r.Error = &text
		return r
	}
	s.propose(&r, o)
	return r
}

// sumUp adds the owners, by name, the renewals, and what cannot be read.
func (p *Processor) sumUp(leases []changefeed.LeaseDocument, now time.Time) {
	owners := map[string]Owner{}
	for _, l := range leases {
		if l.Err != nil {
			p.Unreadable = append(p.Unreadable, Unreadable{l.ID, l.Err.Error()})
			continue
		}
		renewed := secondsSince(l.Time, now)
		p.NewestSeconds, p.OldestSeconds = newer(p.NewestSeconds, renewed), older(p.OldestSeconds, renewed)
		if l.Owner != "" {
			o := owners[l.Owner]
			o.Name, o.Partitions, o.RenewedSeconds = l.Owner, o.Partitions+1, newer(o.RenewedSeconds, renewed)
			o.Live = o.Live || now.Sub(l.Time) <= leaseExpiration
			owners[l.Owner] = o
		}
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		p.Owners = append(p.Owners, owners[name])
	}
}

// newer returns the lower of two ages in seconds, of which nil is unknown; older the greater.
func newer(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func older(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// Complete reports whether everything could be read and looked up.
func (r Report) Complete() bool {
	for _, p := range r.Processors {
		if p.Error != nil || len(p.Unreadable) > 0 {
			return false
		}
	}
	return true
}

func modeName(m changefeed.Mode) string {
	if m == changefeed.FullFidelity {
		return "all versions and deletes"
	}
	return "incremental"
}

// secondsSince is at least 0, since clocks differ; nil if t is zero.
func secondsSince(t, now time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := max(0, int64(now.Sub(t).Seconds()))
	return &seconds
}
