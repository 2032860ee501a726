package state

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// ThroughputName is the name of the document that keeps what is remembered of the throughput of containers.
const ThroughputName = ".throughput"

// Provisionings is that document.
type Provisionings struct {
	Containers map[string]Provisioning `json:"throughput"`
}

// Provisioning is what is remembered of the throughput of one container from before it is changed for the
// first time until what was found is given back (docs/throughput.md).
type Provisioning struct {
	Setting   string `json:"setting"` // name of the setting with the connection, which is still needed when no processor names it
	Database  string `json:"database"`
	Container string `json:"container,omitempty"` // "" = the database itself
	Autoscale bool   `json:"autoscale,omitempty"`

	Before int `json:"before"`           // request units a second that were found
	Was    int `json:"was"`              // before the last change; that of Set once it was seen to be made
	Set    int `json:"set"`              // by the last change
	Late   int `json:"late,omitempty"`   // by a change before that, which was not seen to be made: another process may still make it; 0 = none
	Theirs int `json:"theirs,omitempty"` // that somebody else provisioned, and that is left alone; 0 = nobody did

	Memory scaling.ThroughputMemory `json:"memory,omitzero"`
}

// ContainerThroughput is the throughput of one container that a processor names, as of its last poll. In
// the State of a group they are those that its members name.
type ContainerThroughput struct {
	Account     string `json:"account"` // host
	Database    string `json:"database"`
	Container   string `json:"container,omitempty"` // "" = the database itself
	Apply       bool   `json:"apply,omitempty"`     // it is provisioned, rather than recommended
	Min         int    `json:"min,omitempty"`       // 0 = what was found
	Max         int    `json:"max"`
	Provisioned int    `json:"provisioned,omitempty"` // request units a second when it was read last; 0 = it never was
	Found       int    `json:"found,omitempty"`       // before the first change; 0 = nothing was changed

	Decision *scaling.ThroughputDecision `json:"decision,omitempty"` // nil where nothing is decided
	Memory   scaling.ThroughputMemory    `json:"memory,omitzero"`    // for the next recommendation
	Note     string                      `json:"note,omitempty"`     // why it is left alone; "" = it is not
	Error    string                      `json:"error,omitempty"`    // why it could not be read or changed

	Hours []ThroughputHour `json:"hours,omitempty"` // the last ThroughputHours that were polled, oldest first
}

// Name is DATABASE/CONTAINER, or the database alone.
func (c ContainerThroughput) Name() string {
	if c.Container == "" {
		return c.Database
	}
	return c.Database + "/" + c.Container
}

// Same reports whether both are of one container.
func (c ContainerThroughput) Same(o ContainerThroughput) bool {
	return c.Account == o.Account && c.Database == o.Database && c.Container == o.Container
}

// AtLimit reports whether the replicas need more than the container has, and it may have no more.
func (c ContainerThroughput) AtLimit() bool {
	return c.Apply && c.Note == "" && c.Decision != nil && c.Decision.AtLimit && c.Decision.RUPerSecond == c.Provisioned
}

// ThroughputHour is an hour of a container's throughput, which is billed by its highest.
type ThroughputHour struct {
	Start       time.Time `json:"start"`
	Provisioned int       `json:"provisioned"` // request units a second, the highest
	Decided     int       `json:"decided"`     // the highest that was recommended, or was to be provisioned
}

// ThroughputHours is how many hours of a container are remembered.
const ThroughputHours = 24

// Bill takes what is provisioned and decided now into the hours, after those of the poll before.
func (c *ContainerThroughput) Bill(now time.Time, before []ThroughputHour) {
	hour := now.UTC().Truncate(time.Hour)
	oldest := hour.Add(-(ThroughputHours - 1) * time.Hour)
	for _, h := range before {
		if !h.Start.Before(oldest) && !h.Start.After(hour) {
			c.Hours = append(c.Hours, h)
		}
	}
	if c.Decision == nil {
		return
	}
	if n := len(c.Hours); n == 0 || c.Hours[n-1].Start.Before(hour) {
		c.Hours = append(c.Hours, ThroughputHour{Start: hour})
	}
	last := &c.Hours[len(c.Hours)-1]
	last.Provisioned, last.Decided = max(last.Provisioned, c.Provisioned), max(last.Decided, c.Decision.RUPerSecond)
}

// throughput sums up the containers.
func (s State) throughput() (provisioned, desired *int) {
	for i, c := range s.Containers {
		if i == 0 {
			provisioned, desired = new(int), new(int)
		}
		if c.Provisioned == 0 || provisioned == nil {
			provisioned = nil
		} else {
			*provisioned += c.Provisioned
		}
		if c.Decision == nil || desired == nil {
			desired = nil
		} else {
			*desired += c.Decision.RUPerSecond
		}
	}
	return provisioned, desired
}
