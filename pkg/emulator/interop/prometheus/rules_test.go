package prometheus

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const infra = "../../../../infra/helm/feedscale/files/"

// alerts are the expressions of the rules, by their names.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	groups, errs := rulefmt.ParseFile(infra+"rules.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	found := make(map[string]string)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule.Expr
		}
	}
	return found
}

// TestARuleIsTrueWhereItsAlertIsMeant evaluates each rule with the engine, 20 minutes after the
// series begin.
func TestARuleIsTrueWhereItsAlertIsMeant(t *testing.T) {
	all := alerts(t)
	status := func(name string) string {
		return `feedscale_processor_status{processor="orders",status="` + name + `",instance="a"} 1x30
			feedscale_processor_status{processor="orders",status="` + name + `",instance="b"} 1x30
			feedscale_processor_status{processor="audit",status="` + name + `"} 0x30
			feedscale_processor_status{processor="audit",status="ok"} 1x30`
	}
	for alert, c := range map[string]struct{ series, finds string }{
		"FeedscaleBehind": {`feedscale_processor_change_age_seconds{processor="orders",instance="a"} 700x30
			feedscale_processor_change_age_seconds{processor="audit",instance="a"} 30x30`, `{processor="orders"} 700`},
		"FeedscaleStalled":   {status("stalled"), `{processor="orders"} 1`},
		"FeedscaleExpiring":  {status("expiring"), `{processor="orders"} 1`},
		"FeedscaleAhead":     {status("ahead"), `{processor="orders"} 1`},
		"FeedscaleUncovered": {status("uncovered"), `{processor="orders"} 1`},
		"FeedscaleUnclaimed": {status("unclaimed"), `{processor="orders"} 1`},
		"FeedscaleSplitting": {status("splitting"), `{processor="orders"} 1`},
		"FeedscaleUnknown":   {status("unknown"), `{processor="orders"} 1`},
		// audit was polled lately, by the other one of two instances.
		"FeedscaleNoPoll": {`feedscale_processor_last_poll_timestamp_seconds{processor="orders",instance="a"} 0x30
			feedscale_processor_last_poll_timestamp_seconds{processor="audit",instance="a"} 0x30
			feedscale_processor_last_poll_timestamp_seconds{processor="audit",instance="b"} 0+60x30`, `{processor="orders"} 1200`},
		"FeedscaleNoMetrics":       {`feedscale_state_readable 1x2 _x30`, `{} 1`},
		"FeedscaleStateUnreadable": {`feedscale_state_readable{instance="a"} 1x30` + "\n" + `feedscale_state_readable{instance="b"} 0x30`, `{} 0`},
		"FeedscaleEventsWait": {`feedscale_outbox_events{processor="orders"} 2x30
			feedscale_outbox_events{processor="audit"} 0x30`, `{processor="orders"} 2`},
		"FeedscaleSignalsFail": {`feedscale_signal_queue_failures_total{queue="orders"} 0+1x30
			feedscale_signal_queue_failures_total{queue="audit"} 5x30`, `{queue="orders"} 15`},
		"FeedscaleThroughputAtLimit": {`feedscale_throughput_at_limit{processor="orders",account="a",container="shop/orders"} 1x30
			feedscale_throughput_at_limit{processor="audit",account="a",container="shop/audit"} 0x30`, `{account="a",container="shop/orders"} 1`},
		"FeedscaleTickOverruns": {`feedscale_tick_overruns_total 0+1x30`, `{} 20`},
	} {
		if all[alert] == "" {
			t.Errorf("there is no rule %s", alert)
			continue
		}
		t.Run(alert, func(t *testing.T) {
			engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true})
			promqltest.RunTest(t, fmt.Sprintf("load 1m\n\t%s\n\neval instant at 20m %s\n\t%s\n", strings.ReplaceAll(c.series, "\n", "\n\t"), all[alert], c.finds), engine)
		})
		delete(all, alert)
	}
	for alert := range all {
		t.Errorf("%s is not tried", alert)
	}
}

func TestTheDashboardIsPromQL(t *testing.T) {
	text, err := os.ReadFile(infra + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			// What Grafana puts in for its variables.
			expression := strings.NewReplacer("$__rate_interval", "4m", "$processor", "orders|audit").Replace(target.Expr)
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(expression); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Error("there are no panels")
	}
}
