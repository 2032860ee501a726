//go:build grafana

package check_test

import (
	"strings"
	"testing"
)

// TestGrafanaTakesTheDashboard checks the dashboard of infra/helm against the types that Grafana
// publishes.
func TestGrafanaTakesTheDashboard(t *testing.T) {
	t.Parallel()
	dashboard := read(t, "infra", "helm", "feedscale", "files", "dashboard.json")
	for _, c := range []struct{ rule, source, finds string }{
		{"as it is", dashboard, ""},
		{"a field that is not there is found", strings.Replace(dashboard, `"schemaVersion"`, `"schemeVersion"`, 1), "may only specify known properties"},
		{"a value that is not allowed is found", strings.Replace(dashboard, `"absolute"`, `"relative"`, 1), `'"relative"' is not assignable`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			found := strings.Join(inNode[[]string](t, "grafana", "check.mjs", map[string]string{"dashboard": c.source}), "\n")
			if !strings.Contains(found, c.finds) || c.finds == "" && found != "" {
				t.Errorf("got %q, want %q", found, c.finds)
			}
		})
	}
}
