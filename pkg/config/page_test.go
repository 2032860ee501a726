package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rows are the cells of each table row of docs/configure.md, by the names in backquotes of the first one.
func rows(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|") // with nothing before the first and after the last
		if len(cells) != 6 {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			all[name[1]] = cells
		}
	}
	return all
}

// TestEverySettingIsOnItsPage holds the settings and their defaults to the table of docs/configure.md.
func TestEverySettingIsOnItsPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("settings.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := rows(t)
	settings := regexp.MustCompile(`env:"(FEEDSCALE_\w+)"(?: envDefault:"([^"]*)")?`).FindAllStringSubmatch(string(source), -1)
	if len(settings) < 25 {
		t.Fatalf("only %d settings were found", len(settings))
	}
	for _, s := range settings {
		name, value := s[1], s[2]
		if name == "FEEDSCALE_RU_PRICE" { // is ignored, with a warning
			continue
		}
		if cells, ok := documented[name]; !ok {
			t.Errorf("docs/configure.md has no row for %s", name)
		} else if !strings.Contains(cells[2], value) {
			t.Errorf("%s is %s by default, and docs/configure.md says %s", name, value, cells[2])
		}
	}
	for name := range documented {
		if strings.HasPrefix(name, "FEEDSCALE_") && !strings.Contains(string(source), `"`+name+`"`) {
			t.Errorf("docs/configure.md has %s, and settings.go does not", name)
		}
	}
}

// TestEveryFieldIsOnItsPage holds the fields of a processor to the table of docs/configure.md.
func TestEveryFieldIsOnItsPage(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties struct {
			Defaults struct{ Properties map[string]any }
		}
	}
	text, err := os.ReadFile("processors.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	fields := slices.Sorted(maps.Keys(schema.Properties.Defaults.Properties))
	if len(fields) < 30 {
		t.Fatalf("only these fields were found: %q", fields)
	}
	documented := slices.Collect(maps.Keys(rows(t)))
	for _, field := range fields {
		if !slices.ContainsFunc(documented, func(row string) bool { return row == field || strings.HasPrefix(row, field+".") }) {
			t.Errorf("docs/configure.md has no row for %s", field)
		}
	}
}
