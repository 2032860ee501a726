package events_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestThePackageNeedsTheStandardLibraryAlone keeps the contract free of its transport: a program that
// only reads events, or an action, is not to carry the Service Bus client.
func TestThePackageNeedsTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", ".")
	list.Stderr = t.Output()
	lines, err := list.Output()
	if err != nil {
		t.Fatalf("listing the dependencies: %v", err)
	}
	var outside []string
	for line := range strings.Lines(string(lines)) {
		path, standard, _ := strings.Cut(strings.TrimSpace(line), " ")
		if standard != "true" {
			outside = append(outside, path)
		}
	}
	// The package lists itself, which shows that the list is the right one.
	if len(outside) != 1 || outside[0] != "github.com/feedscale/feedscale/pkg/events" {
		t.Errorf("%d packages outside the standard library: %s; want this one alone", len(outside), strings.Join(outside, ", "))
	}
	t.Logf("%d packages, of which %d outside the standard library", strings.Count(string(lines), "\n"), len(outside))
}
