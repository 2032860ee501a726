package console_test

import (
	"io"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// follows has a processor with a container for each thing that can be said of one.
func follows() []state.State {
	s := polled()[:1]
	needed := func(provisioned, to int, autoscale, atLimit bool, step, why string) *scaling.ThroughputDecision {
		return &scaling.ThroughputDecision{RUPerSecond: to, Provisioned: provisioned, Autoscale: autoscale, AtLimit: atLimit, Needed: &to,
			Reasons: []scaling.ThroughputReason{{Step: "demand", RUPerSecond: to, Why: "first needs 1 x 1500 RU/s"}, {Step: step, RUPerSecond: to, Why: why}}}
	}
	hours := []state.ThroughputHour{{Start: noon.Add(-time.Hour), Provisioned: 500, Decided: 500}, {Start: noon, Provisioned: 500, Decided: 1500}}
	s[0].Containers = []state.Container{
		{Account: "a.example", Database: "shop", Container: "views", Max: 10_000, Provisioned: 500, Hours: hours,
			Decision: needed(500, 1500, false, false, "demand", "second needs nothing for 0 replicas")},
		{Account: "a.example", Database: "shop", Container: "orders", Apply: true, Max: 4000, Found: 400, Provisioned: 4000, Hours: hours,
			Decision: needed(4000, 4000, false, true, "max", "max is 4000")},
		{Account: "a.example", Database: "shared", Apply: true, Min: 1000, Max: 4000, Provisioned: 2000, Note: "somebody else provisioned 2000 RU/s in place of 3000", Hours: hours,
			Decision: needed(2000, 3000, true, false, "min", "min is 3000")},
		{Account: "b.example", Database: "shop", Container: "new", Max: 4000, Error: "it has no\nthroughput"},
	}
	return s
}

func TestContainersStandBelowTheProcessorThatTheyFollow(t *testing.T) {
	t.Parallel()
	golden(t, "throughput", func(w io.Writer, style console.Style) error {
		return console.WriteProcessors(w, follows(), nil, false, style)
	})
	golden(t, "throughput-explained", func(w io.Writer, style console.Style) error {
		return console.WriteExplanations(w, follows(), false, style)
	})
	golden(t, "throughput-json", func(w io.Writer, _ console.Style) error {
		return console.WriteProcessorsJSON(w, follows(), nil)
	})
}
