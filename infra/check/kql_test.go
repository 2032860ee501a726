package check_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// queries returns the sources of infra/kql by name.
func queries(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../kql/*.kql")
	testworld.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no queries")
	}
	found := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		testworld.Must(t, err)
		found[filepath.Base(file)] = string(text)
	}
	return found
}

func TestTheQueriesAreSound(t *testing.T) {
	t.Parallel()
	for _, mistake := range inNode[[]string](t, "npm", "kql.mjs", queries(t)) {
		t.Error("infra/kql/" + mistake)
	}
	for name, query := range queries(t) {
		if strings.Contains(query, "severityLevel") {
			t.Errorf("%s looks at the severity of a trace, which the host chooses by the stream that a line came in", name)
		}
	}
}

func TestAMistakeInAQueryIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, query, finds string }{
		{"a column that is not there", "traces | where text has 'a'", "a.kql:1: The name 'text' does not refer to any known column"},
		{"a function that is not there", "traces\n| extend a = number(message)", "a.kql:2: The name 'number' does not refer to any known function"},
		{"a keyword as a name", "traces | extend kind = message", "a.kql:1: The name 'kind' needs to be bracketed"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			found := inNode[[]string](t, "npm", "kql.mjs", map[string]string{"a.kql": c.query})
			if len(found) == 0 || !strings.HasPrefix(found[0], c.finds) {
				t.Errorf("got %q, want %q", found, c.finds)
			}
		})
	}
}

// TestEveryQueryIsDocumentedAndUsed: docs/monitor.md links to each query, and the alerts load those
// that draw no chart.
func TestEveryQueryIsDocumentedAndUsed(t *testing.T) {
	t.Parallel()
	page, alerts := read(t, "docs", "monitor.md"), read(t, "infra", "modules", "alerts.bicep")
	for name := range queries(t) {
		if !strings.Contains(page, "(../infra/kql/"+name+")") {
			t.Errorf("docs/monitor.md has no link to infra/kql/%s", name)
		}
		loaded := strings.Contains(alerts, "loadTextContent('../kql/"+name+"')")
		if shown := slices.Contains([]string{"lag.kql", "age.kql", "replicas.kql", "now.kql"}, name); loaded == shown {
			t.Errorf("infra/kql/%s is loaded by the alerts: %t", name, loaded)
		}
	}
	for _, replaced := range regexp.MustCompile(`replace\(loadTextContent\('\.\./kql/(\w+\.kql)'\), '([^']+)'`).FindAllStringSubmatch(alerts, -1) {
		if strings.Count(queries(t)[replaced[1]], replaced[2]) != 1 {
			t.Errorf("the alerts replace %q, which infra/kql/%s does not have once", replaced[2], replaced[1])
		}
	}
}
