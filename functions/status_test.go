package main_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
)

// TestStatusTellsOfAFunctionAppByItsAPIAndByItsTable also checks that status shows changes of the
// throughput.
func TestStatusTellsOfAFunctionAppByItsAPIAndByItsTable(t *testing.T) {
	t.Parallel()
	w := newFollowed(t)
	h := w.start(applied)
	if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		t.Fatal(err)
	}
	table := w.settings()
	table["FEEDSCALE_PROCESSORS"] = strings.Replace(table["FEEDSCALE_PROCESSORS"], "}]}", applied+"}]}", 1)
	for rule, settings := range map[string]map[string]string{
		"API":   {"FEEDSCALE_URL": h.URL(), "FEEDSCALE_API_KEY": h.Key("processors")},
		"table": table,
	} {
		r := command(t, t.TempDir(), settings, "status")
		for _, want := range []string{"orders     lagging  ", "Throughput of shop/views: ", "1500", "In 1 hour: "} {
			if r.Status != 0 || r.Stderr != "" || !strings.Contains(r.Stdout, want) {
				t.Errorf("by its %s: %q is missing in %+v", rule, want, r)
			}
		}
	}
	if refused := command(t, t.TempDir(), map[string]string{"FEEDSCALE_URL": h.URL()}, "status"); refused.Status != 1 || !strings.Contains(refused.Stderr, "asks for a key (401 Unauthorized): set FEEDSCALE_API_KEY to it") {
		t.Errorf("without a key: %+v", refused)
	}
}
