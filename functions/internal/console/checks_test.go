package console_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/functions/internal/console"
)

// checked has a line for each way in which a check ends.
func checked() check.Report {
	var many []string
	for n := range 7 {
		many = append(many, fmt.Sprintf("p%d", n))
	}
	return check.Report{Checks: []check.Line{
		{Target: "processors.yaml", Check: "settings", Status: check.OK, Detail: "no mistakes, 7 processors", Processors: many},
		{Target: "shop.documents.azure.com/shop/nowhere", Check: "read metadata", Status: check.Fail, Detail: "there is no container nowhere in database shop (404)", Processors: many,
			Fix: new("az cosmosdb sql container list --account-name shop --resource-group RESOURCE_GROUP --database-name shop")},
		{Target: "shop.documents.azure.com/shop/nowhere", Check: "read feed", Status: check.Skip, Detail: "not tried, since read metadata fails for shop.documents.azure.com/shop/nowhere", Processors: many},
		{Target: "shop.documents.azure.com/shop/leases", Check: "query leases", Status: check.Fail, Detail: "the service is out of order (503)", Processors: many[:2]},
		{Target: "state table feedscale", Check: "dns", Status: check.Fail, Detail: "the endpoint is not a URL", Fix: new("correct setting TABLES")},
	}}
}

func TestWhatFailsIsFollowedByWhoDependsOnItAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	golden(t, "checks", func(w io.Writer, style console.Style) error { return console.WriteChecks(w, checked(), false, style) })
}

func TestTheLastLineOfChecksSaysHowItStands(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"checks-hold": true, "checks-out-of-time": false} {
		golden(t, name, func(w io.Writer, style console.Style) error {
			r := check.Report{Checks: checked().Checks[:1], OK: ok}
			return console.WriteChecks(w, r, false, style)
		})
	}
	golden(t, "checks-warn", func(w io.Writer, style console.Style) error {
		return console.WriteChecks(w, check.Report{OK: true, Checks: []check.Line{
			checked().Checks[0],
			{Target: "processor p0", Check: "find leases", Status: check.Warn, Detail: "no checkpoint exists for partitions 0 and 1", Processors: []string{"p0"}, Fix: new("let each see a first change")},
		}}, false, style)
	})
	golden(t, "checks-failed", func(w io.Writer, style console.Style) error { return console.WriteChecks(w, checked(), true, style) })
}

func TestOfManyUntriedChecksOnlyTheFirstAreShown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	lines := slices.Repeat([]check.Line{{Target: "c", Check: "read feed", Status: check.Skip}}, 10_000)
	if err := console.WriteChecks(&b, check.Report{Checks: lines}, false, console.Style{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "\n") != 24 || !strings.Contains(got, "\n9980 more were not tried: --output json lists them\n") {
		t.Errorf("%d lines, the last %s", strings.Count(got, "\n"), got[max(0, len(got)-200):])
	}
}
