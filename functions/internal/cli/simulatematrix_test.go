package cli

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"
)

// simulated runs simulate in process, as a pipe and not a terminal meets it.
func simulated(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := Env{Args: append([]string{"simulate"}, args...), Stdout: &out, Stderr: &errs, Now: time.Now, Terminal: func() (int, int, bool) { return 0, 0, false }}
	if status := Main(t.Context(), env, []Command{Simulate}, ""); status != 0 {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	return out.String(), errs.String()
}

func TestAMatrixIsALineForEachCell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		args  []string
		seeds string
		cells int // sets of conditions
	}{
		{"one trace, every start-up time and delay", []string{"--trace", "hot"}, "2", 16},
		{"one start-up time", []string{"--trace", "hot", "--startup", "20s"}, "2", 4},
		{"one of everything", []string{"--trace", "hot", "--startup", "20s", "--delay", "3s"}, "2", 1},
		{"every trace", []string{"--startup", "20s", "--delay", "3s"}, "1", 15},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			stdout, stderr := simulated(t, append([]string{"--matrix", "--output", "csv", "--duration", "2m", "--seeds", c.seeds}, c.args...)...)
			lines, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			// The default in four ways, KEDA, the best fixed count and the bound.
			if want := 1 + 7*c.cells; len(lines) != want || stderr != "" {
				t.Fatalf("%d lines, want %d; stderr %q", len(lines), want, stderr)
			}
			if got := strings.Join(lines[0][:8], ","); got != "trace,startUpSeconds,delaySeconds,acting,policy,seeds,replicaHours,secondsOverLag" {
				t.Errorf("columns %s ...", got)
			}
			for _, line := range lines[1:] {
				if line[5] != c.seeds || line[6] == "" || (line[3] == "") != (line[4] == "fixed" || line[4] == "bound") || (line[len(line)-1] != "") != (line[4] == "fixed") {
					t.Errorf("line %q", line)
				}
			}
		})
	}
}

func TestAMatrixIsSummedUpByDefault(t *testing.T) {
	t.Parallel()
	stdout, _ := simulated(t, "--matrix", "--trace", "step", "--duration", "2m", "--seeds", "1")
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) != 1+7 || !strings.HasPrefix(lines[0], "TRACE  POLICY   ACTING ") || strings.Fields(lines[1])[8] != "16" {
		t.Errorf("got\n%s", stdout)
	}
}

func TestTheProgressBarFillsUpAndGoesAway(t *testing.T) {
	t.Parallel()
	var drawn bytes.Buffer
	progress := drawProgress(&drawn)
	for done := range 400 {
		progress(done+1, 400)
	}
	frames := strings.Split(drawn.String(), "\r")
	if len(frames) != 1+101+1 || !strings.Contains(frames[1], "  0 % of 400") || !strings.HasPrefix(frames[51], "████████████████████░") || frames[102] != "\x1b[K" {
		t.Errorf("%d frames: %q ... %q", len(frames), frames[1], frames[len(frames)-1])
	}
}
