package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
)

// Every file of testdata/mistakes is read, and its mistakes compared with the golden file next to
// it. UPDATE_GOLDEN=1 writes the golden files.
func TestMistakesAreListedAtOnceWithTheirPlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.Load(filepath.Base(file), text, testLookup())
			if err == nil {
				t.Fatal("no mistakes found")
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestDocumentsOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	bomb := "processors: []\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	for _, c := range []struct{ name, text, want string }{
		{"aliases that multiply", bomb, "more than 500000 values"},
		{"brackets without end", "processors: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "nested deeper than 32 levels"},
		{"a file of another kind", "processors: []\n#" + strings.Repeat("x", 9<<20), "larger than 8 MiB"},
		{"an object with fields without end", "processors:\n- {" + strings.Repeat("a: 1, ", 1100) + "}", "more than 1000 fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, c.text)
			if len(got) != 1 {
				t.Fatalf("got %d mistakes, want 1: %.300s", len(got), got)
			}
			contains(t, got, c.want)
		})
	}
}

func TestUnknownFieldNamesTheNearestKnownOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, want string }{
		{"changefeedlagthreshold", "did you mean changeFeedLagThreshold?"},
		{"databaseID", "did you mean databaseId?"},
		{"lesaeContainerId", "did you mean leaseContainerId?"},
		{"minReplicas", "did you mean minReplicaCount?"},
		{"replicationFactor", "allowed are accountHost, activationChangeFeedLagThreshold, behavior,"},
		{"pollingInterval", "is a field of KEDA; FEEDSCALE_TIMER_SCHEDULE says when to poll all processors"},
		{"leaseContainerPrefix", "is a field of Azure Functions; write processorName"},
		{strings.Repeat("x", 1000), "allowed are accountHost, activationChangeFeedLagThreshold, behavior,"},
	} {
		t.Run(c.field[:min(20, len(c.field))], func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, minimal+"  "+c.field+": 1\n")
			if len(got) != 1 {
				t.Fatalf("got %d mistakes, want 1:\n%v", len(got), got)
			}
			contains(t, got, c.want)
		})
	}
}

func TestMistakeInDefaultsIsListedOnceAtItsPlace(t *testing.T) {
	t.Parallel()
	got := mistakes(t, `defaults:
  connection: COSMOS
  databaseId: shop
  containerId: orders
  changeFeedLagThreshold: 0
  leaseConnection: MISSING
processors: [{name: a}, {name: b}, {name: c}]`)
	if len(got) != 2 {
		t.Fatalf("got %d mistakes, want 2:\n%v", len(got), got)
	}
	if got[0].Line != 5 || got[0].Field != "defaults.changeFeedLagThreshold" {
		t.Errorf("got %v", got[0])
	}
	if got[1].Line != 6 || got[1].Field != "defaults.leaseConnection" {
		t.Errorf("got %v", got[1])
	}
}

func TestMistakeInDefaultsShowsEvenWhereOverridden(t *testing.T) {
	t.Parallel()
	got := mistakes(t, "defaults: {changeFeedLagThreshold: none}"+minimal+"  changeFeedLagThreshold: 5\n")
	if len(got) != 1 {
		t.Fatalf("got %d mistakes, want 1:\n%v", len(got), got)
	}
	contains(t, got, "processors.yaml:1: defaults.changeFeedLagThreshold: is the text")
}

func TestClashWithADefaultIsShownInTheProcessor(t *testing.T) {
	t.Parallel()
	got := mistakes(t, "defaults: {maxReplicaCount: 3}"+minimal+"  minReplicaCount: 4\n")
	if len(got) != 1 {
		t.Fatalf("got %d mistakes, want 1:\n%v", len(got), got)
	}
	contains(t, got, "processors.yaml:7: processors[0] (orders).minReplicaCount: minReplicaCount is 4 and maxReplicaCount 3")
}

func TestValueOfTheWrongTypeIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"minReplicaCount: true", "is true; allowed are whole numbers, 0 or more"},
		{"minReplicaCount: 1.5", "is 1.5;"},
		{"minReplicaCount: 2026-01-01", "is 2026-01-01;"},
		{"minReplicaCount: [1]", "is a list;"},
		{"minReplicaCount: {a: 1}", "is an object;"},
		{"minReplicaCount: !mine 1", "has a type of its own;"},
		{"minReplicaCount: !!int x", "is x;"},
		{"minReplicaCount: 18446744073709551615", "is 18446744073709551615;"},
		{"minReplicaCount: 99999999999999999999", "is 99999999999999999999;"},
		{"minReplicaCount: 'AccountKey=" + testKey + "'", "is a text of 63 characters;"},
		{"paused: !!bool x", "is x; allowed are true and false"},
		{"schedule: 5", "is 5; allowed is a text, in quotes where it looks like something else"},
		{"cooldownPeriod: [1]", "is a list; allowed is a duration such as 90s, 5m or 1h30m, or a whole number of seconds"},
		{"cooldownPeriod: 1.5", "is 1.5; allowed is a duration"},
		{"behavior: {scaleUp: {tolerance: .nan}}", "is .nan; allowed are numbers, 0 or more"},
		{"behavior: {scaleUp: {tolerance: .inf}}", "is .inf;"},
		{"startFrom: 1969-12-31T23:59:59Z", `"1969-12-31T23:59:59Z" is no start; allowed are now, beginning or an RFC 3339 time from 1970 on, such as `},
		{"startFrom: 2026-01-01", "allowed are now, beginning or an RFC 3339 time from 1970 on, such as "},
		{"target: 5", "is 5; allowed is an object"},
		{"schedules: 5", "is 5; allowed is a list"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, minimal+"  "+c.line+"\n")
			if len(got) != 1 {
				t.Fatalf("got %d mistakes, want 1:\n%v", len(got), got)
			}
			contains(t, got, c.want)
		})
	}
}

func TestMistakeInAMergedFieldIsShownWhereItWasMerged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, merge string }{
		{"of one object", "{paused: 5}"},
		{"of a list of objects", "[{paused: 5}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, minimal+"  <<: "+c.merge+"\n")
			if len(got) != 1 || got[0].Field != "processors[0] (orders).paused" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestActivationHasToBeBelowTheThreshold(t *testing.T) {
	t.Parallel()
	load(t, minimal+"  activationChangeFeedLagThreshold: 99\n")
	got := mistakes(t, minimal+"  activationChangeFeedLagThreshold: 100\n")
	contains(t, got, "processors[0] (orders).activationChangeFeedLagThreshold: activationChangeFeedLagThreshold is 100 and changeFeedLagThreshold 100; allowed is an activation below the threshold")
}
