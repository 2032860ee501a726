package simulation_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// fewestMutants is how many defects are planted at least: whoever removes one plants another.
const fewestMutants = 45

// defectOf has, for each promise of docs/reliability.md, a planted defect that breaks it.
var defectOf = map[string]string{
	"no event is lost or reordered":                "of two waiting events the older is published",
	"a repetition has the same bytes":              "a result that lost the compare-and-swap is published",
	"an event comes when it is due":                "no heartbeat",
	"nothing is decided from what is unknown":      "the first page of leases passes for all",
	"unknown is never zero":                        "a partition that cannot be read is zero",
	"the lag is the true one":                      "a lag is one too small",
	"no hole between leases is missed or invented": "uncovered keys are never found",
	"no scale-in, nor step to zero, while a partition is unknown or a poll has failed": "an incomplete poll may scale in",
	"what is measured is asked for":                    "maxReplicaCount is not kept",
	"a group has what its members ask for most":        "a group has what its last member asks for",
	"throughput that was found is given back":          "throughput is never given back",
	"a signal queue holds a message for each replica":  "one signal too much stays",
	"all is well again two ticks after the faults":     "an account that was silent is never asked again",
	"a container that does not answer blinds no other": "a container that hangs keeps the slots of its account",
	"nothing grows": "what a removed processor leaves is never published",
}

// TestEveryPromiseHasAMutant holds that each promise could be seen to be broken.
func TestEveryPromiseHasAMutant(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reliability.md")
	testworld.Must(t, err)
	_, part, _ := strings.Cut(string(page), "\n## A tick under faults\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var promises []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(part, -1) {
		promises = append(promises, row[1])
	}
	if len(promises) < 2 || promises[0] != "promise" {
		t.Fatalf("docs/reliability.md has no table of promises: %q", promises)
	}
	for _, promise := range promises[1:] {
		defect := defectOf[promise]
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return defect != "" && m.defect == defect }) {
			t.Errorf("no defect is planted that breaks %q: it was %q", promise, defect)
		}
	}
	if len(mutants) < fewestMutants {
		t.Errorf("%d defects are planted, want %d at least", len(mutants), fewestMutants)
	}
}
