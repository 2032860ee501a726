package report

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Throughput is what is said of a container whose throughput follows a processor (docs/throughput.md).
// Every field is always present in its JSON; null is unknown, and what there is not.
type Throughput struct {
	Account     string                     `json:"account"`   // host
	Container   string                     `json:"container"` // DATABASE/ID, or a database whose containers share it
	Mode        string                     `json:"mode"`      // recommend or apply
	Provisioned *int                       `json:"provisionedRUPerSecond"`
	Desired     *int                       `json:"desiredRUPerSecond"` // recommended, or to be provisioned
	Needed      *int                       `json:"neededRUPerSecond"`  // by the replicas, before every bound
	Found       *int                       `json:"foundRUPerSecond"`   // before the first change; null if nothing was changed
	Min         *int                       `json:"min"`                // null = what was found
	Max         int                        `json:"max"`
	Autoscale   bool                       `json:"autoscale"` // the numbers are those of its maximum
	AtLimit     bool                       `json:"atLimit"`   // the replicas need more than it may be raised to
	Bill        ThroughputBill             `json:"bill"`
	Note        *string                    `json:"note"` // why it is left alone
	Error       *string                    `json:"error"`
	Reasons     []scaling.ThroughputReason `json:"reasons"`
}

// ThroughputBill sums up the RU/s-hours of a container in the last hours, each by its highest throughput;
// if that is autoscaled, at most.
type ThroughputBill struct {
	Hours              int `json:"hours"` // that were polled, up to 24
	ProvisionedRUHours int `json:"provisionedRUHours"`
	DesiredRUHours     int `json:"desiredRUHours"` // if it had always been as desired
}

func newThroughput(c state.Container) Throughput {
	t := Throughput{
		Account: c.Account, Container: c.Name(), Mode: "recommend", Provisioned: positive(c.Provisioned), Found: positive(c.Found),
		Min: positive(c.Min), Max: c.Max, Note: optional(c.Note), Error: optional(c.Error), Reasons: []scaling.ThroughputReason{},
	}
	if c.Apply {
		t.Mode = "apply"
	}
	if d := c.Decision; d != nil {
		t.Desired, t.Needed, t.Autoscale, t.AtLimit = &d.RUPerSecond, d.Needed, d.Autoscale, d.AtLimit
		t.Reasons = append(t.Reasons, d.Reasons...)
	}
	for _, h := range c.Hours {
		t.Bill.Hours++
		t.Bill.ProvisionedRUHours += h.Provisioned
		t.Bill.DesiredRUHours += h.Decided
	}
	return t
}

func throughputOf(s state.State) []Throughput {
	all := make([]Throughput, 0, len(s.Containers))
	for _, c := range s.Containers {
		all = append(all, newThroughput(c))
	}
	return all
}

// RUPerSecond is what there is and, if that is another number, what is desired: "500 → 1500".
func (t Throughput) RUPerSecond() string {
	switch {
	case t.Provisioned == nil:
		return "?"
	case t.Desired == nil || *t.Desired == *t.Provisioned:
		return fmt.Sprint(*t.Provisioned)
	}
	return fmt.Sprintf("%d → %d", *t.Provisioned, *t.Desired)
}

// Why is the note, the error or else the reason that settled it; "" if there is none.
func (t Throughput) Why() string {
	switch {
	case t.Error != nil:
		return *t.Error
	case t.Note != nil:
		return *t.Note
	case len(t.Reasons) == 0:
		return ""
	}
	last := t.Reasons[len(t.Reasons)-1]
	return last.Step + ": " + last.Why
}

// eventThroughput is what a scale event says of the containers.
func eventThroughput(s state.State) (all []events.Throughput) {
	for _, t := range throughputOf(s) {
		all = append(all, events.Throughput{
			Account: t.Account, Container: t.Container, Mode: t.Mode, Provisioned: t.Provisioned, Desired: t.Desired, Needed: t.Needed, AtLimit: t.AtLimit,
		})
	}
	return all
}

func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}
