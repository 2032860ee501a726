package metrics_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// expressions are those of infra/helm/feedscale/files/rules.yaml and dashboard.json, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	text, err := os.ReadFile("../../infra/helm/feedscale/files/rules.yaml")
	testworld.Must(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	testworld.Must(t, yaml.Unmarshal(text, &rules))
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			found["rule "+rule.Alert] = rule.Expr
		}
	}
	text, err = os.ReadFile("../../infra/helm/feedscale/files/dashboard.json")
	testworld.Must(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
	}
	testworld.Must(t, json.Unmarshal(text, &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found["panel "+panel.Title+" "+target.RefID] = target.Expr
		}
	}
	for _, variable := range dashboard.Templating.List {
		found["variable "+variable.Name] = string(variable.Query)
	}
	return found
}

// TestRulesAndDashboardNameSeriesThatThereAre holds every name of a series, of its labels and of a status in them to
// those of a scrape. Whether the expressions are PromQL is for promtool to say (infra/check, make interop).
func TestRulesAndDashboardNameSeriesThatThereAre(t *testing.T) {
	t.Parallel()
	series := make(map[string]map[string]bool) // labels, by name
	for one := range everything(t).scrape(t) {
		name, labels, _ := strings.Cut(one, "{")
		if series[name] == nil {
			series[name] = make(map[string]bool)
		}
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(labels, -1) {
			series[name][label[1]] = true
		}
	}
	all := expressions(t)
	if len(all) < 30 {
		t.Errorf("there are %d expressions", len(all))
	}
	for where, expression := range all {
		named := regexp.MustCompile(`(feedscale_\w+?)(?:_bucket)?\b(?:\{([^}]*)\})?`).FindAllStringSubmatch(expression, -1)
		if len(named) == 0 && where != "variable datasource" {
			t.Errorf("%s names no series: %s", where, expression)
		}
		for _, use := range named {
			labels, ok := series[use[1]]
			if !ok {
				t.Errorf("%s: there is no %s", where, use[1])
			}
			asked := regexp.MustCompile(`(\w+)(?:=~?|!=)"`).FindAllStringSubmatch(use[2], -1)
			asked = append(asked, regexp.MustCompile(`(\w+)`).FindAllStringSubmatch(strings.Join(grouped(expression), " "), -1)...)
			for _, label := range asked {
				if !labels[label[1]] && label[1] != "le" {
					t.Errorf("%s: %s has no label %s", where, use[1], label[1])
				}
			}
		}
		for _, statuses := range regexp.MustCompile(`status=~?"([^"]*)"`).FindAllStringSubmatch(expression, -1) {
			for status := range strings.SplitSeq(statuses[1], "|") {
				known := changefeed.Statuses()
				if !slices.Contains(known[:], changefeed.Status(status)) {
					t.Errorf("%s: there is no status %s", where, status)
				}
			}
		}
	}
	// What operators have to know of is told: no status is forgotten by the alerts.
	rules := slices.Collect(maps.Values(all))
	for _, status := range []changefeed.Status{changefeed.StatusUnknown, changefeed.StatusStalled, changefeed.StatusExpiring, changefeed.StatusUnclaimed, changefeed.StatusSplitting} {
		if !slices.ContainsFunc(rules, func(expression string) bool { return strings.Contains(expression, `status="`+string(status)+`"`) }) {
			t.Errorf("no rule is of the status %s", status)
		}
	}
}

// grouped are the labels that an expression groups by.
func grouped(expression string) (labels []string) {
	for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expression, -1) {
		labels = append(labels, by[1])
	}
	return labels
}

// TestEveryAlertLeadsToItsPages holds that a runbook is a section of docs/, and that who is told of a processor
// has its page.
func TestEveryAlertLeadsToItsPages(t *testing.T) {
	t.Parallel()
	const docs = "https://github.com/feedscale/feedscale/blob/main/docs/"
	text, err := os.ReadFile("../../infra/helm/feedscale/files/rules.yaml")
	testworld.Must(t, err)
	alerts, err := os.ReadFile("../../infra/modules/alerts.bicep")
	testworld.Must(t, err)
	rules := strings.Split(string(text), "- alert: ")[1:]
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		if strings.Contains(rule, "by (processor)") != strings.Contains(rule, "/api/dashboard#/processors/{{ $labels.processor }}") {
			t.Errorf("%s is of a processor and has no page, or the other way round", name)
		}
	}
	runbooks := regexp.MustCompile(`runbook_url: `+docs+`(\S+)`).FindAllSubmatch(text, -1)
	inAzure := regexp.MustCompile(`    runbook: '([a-z]+\.md[^']*)'`).FindAllSubmatch(alerts, -1)
	if len(runbooks) != len(rules) || len(inAzure) != strings.Count(string(alerts), "    description: '")-1 {
		t.Errorf("%d rules have %d runbooks, and alerts.bicep has %d", len(rules), len(runbooks), len(inAzure))
	}
	for _, runbook := range append(runbooks, inAzure...) {
		page, section, _ := strings.Cut(string(runbook[1]), "#")
		text, err := os.ReadFile("../../docs/" + page)
		testworld.Must(t, err)
		headings := strings.ReplaceAll(strings.ToLower(string(text)), " ", "-")
		if section != "" && !regexp.MustCompile(`(?m)^#+-`+section+`$`).MatchString(headings) {
			t.Errorf("docs/%s has no section %s", page, section)
		}
	}
}
