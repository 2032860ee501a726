package report

import (
	"cmp"
	"fmt"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Throughput is the view of a container whose throughput follows a processor (docs/throughput.md).
// Its JSON always has every field; null is unknown or absent.
type Throughput struct {
	events.Throughput
	Found     *int                       `json:"foundRUPerSecond"` // before the first change; null if there was none
	Min       *int                       `json:"min"`              // null = the value of foundRUPerSecond
	Max       int                        `json:"max"`
	Autoscale bool                       `json:"autoscale"` // the numbers are maxima of autoscale
	Bill      ThroughputBill             `json:"bill"`
	Note      *string                    `json:"note"` // why feedscale does not change it
	Error     *string                    `json:"error"`
	Reasons   []scaling.ThroughputReason `json:"reasons"`
}

// ThroughputBill adds up the RU/s-hours of a container in the last hours, each by its highest
// throughput. With autoscale it is an upper bound.
type ThroughputBill struct {
	Hours              int `json:"hours"` // hours with polls, up to 24
	ProvisionedRUHours int `json:"provisionedRUHours"`
	DesiredRUHours     int `json:"desiredRUHours"` // if the desired throughput had been provisioned
}

func throughputOf(s state.State) []Throughput {
	all := make([]Throughput, len(s.Containers))
	for i, c := range s.Containers {
		t := Throughput{
			Throughput: events.Throughput{Account: c.Account, Container: c.Name(), Mode: "recommend", Provisioned: Given(c.Provisioned)},
			Found:      Given(c.Found), Min: Given(c.Min), Max: c.Max, Note: Given(c.Note), Error: Given(c.Error), Reasons: []scaling.ThroughputReason{},
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
		all[i] = t
	}
	return all
}

// RUPerSecond returns the provisioned and, if it differs, the desired throughput: "500 → 1500".
func (t Throughput) RUPerSecond() string {
	switch {
	case t.Provisioned == nil:
		return "?"
	case t.Desired == nil || *t.Desired == *t.Provisioned:
		return fmt.Sprint(*t.Provisioned)
	}
	return fmt.Sprintf("%d → %d", *t.Provisioned, *t.Desired)
}

// Why returns the error, the note or the last reason, the first that exists; "" if none does.
func (t Throughput) Why() string {
	if why := cmp.Or(t.Error, t.Note); why != nil {
		return *why
	}
	if len(t.Reasons) == 0 {
		return ""
	}
	last := t.Reasons[len(t.Reasons)-1]
	return last.Step + ": " + last.Why
}
