package main_test

import (
	"regexp"
	"strings"
	"testing"
)

// matches compares a text line by line with patterns.
func matches(t *testing.T, text string, patterns ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, pattern := range patterns {
		if i >= len(lines) || !regexp.MustCompile("^"+pattern+"$").MatchString(lines[i]) {
			t.Errorf("line %d does not match %s", i+1, pattern)
		}
	}
	if len(lines) != len(patterns) {
		t.Errorf("%d lines, want %d", len(lines), len(patterns))
	}
	if t.Failed() {
		t.Logf("the text:\n%s", text)
	}
}

func TestPollExplainsADecisionInSentences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	folder, settings := t.TempDir(), w.local()
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}", ", minReplicaCount: 1}, {name: missing, connection: COSMOS, databaseId: shop, containerId: nowhere}]}", 1)
	failed := []string{
		``,
		`missing: nothing is decided, since any number would be invented\.`,
		`  Unknown: account .* there is no container nowhere in database shop .*`,
		`  HTTP answers 503 until a poll works, so that a scaler applies its own fallback\. Nothing is published\.`,
	}

	r := command(t, folder, settings, "poll", "--explain", "--dry-run")
	matches(t, r.stdout, append([]string{
		`orders: 1 replica, its first decision\.`,
		`  25 transactions pending in 1 of 1 partition, the oldest for \d+s\.`,
		`  1\. threshold asks for 1: lag 25 at 10 per replica, capped to 1 partitions\.`,
		`  It is active; a scaler reads metricValue 10\. Nothing is published by a dry run\.`,
	}, failed...)...)
	if r.status != 1 {
		t.Errorf("status %d, want 1: a processor is incomplete", r.status)
	}

	r = command(t, folder, settings, "poll", "--explain")
	matches(t, r.stdout, append([]string{
		`orders: 1 replica, its first decision\.`, `  25 .*`, `  1\. .*`,
		`  It is active; a scaler reads metricValue 10\. Event 1 says so\.`,
	}, failed...)...)

	w.checkpoint(25)
	r = command(t, folder, settings, "poll", "--explain")
	matches(t, r.stdout, append([]string{
		`orders: 1 replica, as before\.`,
		`  Nothing is pending in 1 partition\.`,
		`  0 arrive a second\.`,
		`  1\. activation asks for 0: lag 0 is not above the activation threshold 0\.`,
		`  2\. clamp raises it to 1: minReplicaCount is 1\.`,
		`  It is inactive; a scaler reads metricValue 0\. Event 2 says so\.`,
	}, failed...)...)

	r = command(t, folder, settings, "poll", "--explain")
	if !regexp.MustCompile(`Event 2 of \d{4}-\d\d-\d\dT\S+Z said so already\.`).MatchString(r.stdout) {
		t.Errorf("an unchanged decision: %s", r.stdout)
	}
}

func TestPollExplainsInPlaceOfTheTableOnly(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--output", "json"}, {"--partitions"}} {
		r := command(t, t.TempDir(), nil, append([]string{"poll", "--explain"}, args...)...)
		if r.status != 2 || r.stdout != "" || !strings.Contains(r.stderr, "--explain takes the place of the table") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
