package state

import (
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// ContainersPrefix begins the names of the documents that hold one Container each. Without the dot at its end
// it is the name of OldContainers.
const ContainersPrefix = ".throughput."

// OldContainers is the document in which releases up to 0.1 kept all containers, by the URL of the account
// and DATABASE/CONTAINER.
type OldContainers struct {
	Containers map[string]Container `json:"throughput"`
}

// Container is a container, or a database, whose throughput follows processors (docs/throughput.md). A
// document has what is remembered of it; the States of its processors and of their group have what is
// shown. Throughput is in request units a second.
type Container struct {
	Setting   string `json:"setting,omitempty"` // with the connection, for when no processor names it any more
	Account   string `json:"account,omitempty"` // host
	Database  string `json:"database"`
	Container string `json:"container,omitempty"` // "" = the database itself
	Apply     bool   `json:"apply,omitempty"`     // it is provisioned, rather than recommended
	Min       int    `json:"min,omitempty"`       // 0 = what was found
	Max       int    `json:"max,omitempty"`

	Provisioned int  `json:"provisioned,omitempty"` // when it was read last; 0 = it never was
	Autoscale   bool `json:"autoscale,omitempty"`   // of what was found
	Found       int  `json:"before,omitempty"`      // before the first change, to be given back; 0 = nothing was changed

	Was  int `json:"was,omitempty"`  // before the last change; that of Set once it was seen to be made
	Set  int `json:"set,omitempty"`  // by the last change
	Late int `json:"late,omitempty"` // by a change before that which was not seen to be made: another process may still make it; 0 = none

	Memory scaling.ThroughputMemory `json:"memory,omitzero"`
	Hours  []ThroughputHour         `json:"hours,omitempty"` // the last 24 that were polled, oldest first

	// Of the tick, in a State alone.
	Decision *scaling.ThroughputDecision `json:"decision,omitempty"` // nil if nothing is decided
	Note     string                      `json:"note,omitempty"`     // why it is left alone; "" = it is not
	Error    string                      `json:"error,omitempty"`    // why it could not be read or changed
}

// ThroughputHour is an hour of a container's throughput, which is billed by its highest.
type ThroughputHour struct {
	Start       time.Time `json:"start"`
	Provisioned int       `json:"provisioned"` // the highest
	Decided     int       `json:"decided"`     // the highest that was recommended, or was to be provisioned
}

// Name is DATABASE/CONTAINER, or the database alone.
func (c Container) Name() string {
	if c.Container == "" {
		return c.Database
	}
	return c.Database + "/" + c.Container
}

// Same reports whether both are of one container.
func (c Container) Same(o Container) bool {
	return c.Account == o.Account && c.Database == o.Database && c.Container == o.Container
}

// AtLimit reports whether the replicas need more than the container has and may have.
func (c Container) AtLimit() bool {
	return c.Apply && c.Note == "" && c.Decision != nil && c.Decision.AtLimit && c.Decision.RUPerSecond == c.Provisioned
}

// Bill adds what is provisioned and decided now to the hours.
func (c *Container) Bill(now time.Time) {
	const most = 24
	hour := now.UTC().Truncate(time.Hour)
	c.Hours = slices.DeleteFunc(slices.Clone(c.Hours), func(h ThroughputHour) bool {
		return h.Start.Before(hour.Add((1-most)*time.Hour)) || h.Start.After(hour)
	})
	if c.Decision == nil {
		return
	}
	if n := len(c.Hours); n == 0 || c.Hours[n-1].Start.Before(hour) {
		c.Hours = append(c.Hours, ThroughputHour{Start: hour})
	}
	last := &c.Hours[len(c.Hours)-1]
	last.Provisioned, last.Decided = max(last.Provisioned, c.Provisioned), max(last.Decided, c.Decision.RUPerSecond)
}

// throughput sums up the containers; nil if one of them is unknown, or if there is none.
func (s State) throughput() (provisioned, desired *int) {
	if len(s.Containers) == 0 {
		return nil, nil
	}
	provisioned, desired = new(int), new(int)
	for _, c := range s.Containers {
		if c.Provisioned == 0 || c.Decision == nil {
			return nil, nil
		}
		*provisioned += c.Provisioned
		*desired += c.Decision.RUPerSecond
	}
	return provisioned, desired
}
