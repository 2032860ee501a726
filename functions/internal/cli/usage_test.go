package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestEveryMistakeIsReportedAtOnce also holds that nothing is started or written.
func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	const document = "processors:\n- name: Orders\n  conection: COSMOS\n  databaseId: shop\n  containerId: orders\n  changeFeedLagThreshold: 0\n  schedule: daily\n"
	for _, args := range [][]string{{"poll"}, {"run"}, {"serve"}, {"check"}, {"poll", "--config", "processors.yaml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			p := feedscale{settings: map[string]string{"FEEDSCALE_CONCURRENCY": "none"}, folder: t.TempDir()}
			testworld.Must(t, os.WriteFile(filepath.Join(p.folder, "processors.yaml"), []byte(document), 0o600))
			r := p.apart(t, args...)
			if r.Status != 2 || r.Stdout != "" {
				t.Errorf("status %d, stdout %q", r.Status, r.Stdout)
			}
			for _, want := range []string{"FEEDSCALE_CONCURRENCY", "processors.yaml:2", "processors.yaml:3", "connection", "processors.yaml:6", "processors.yaml:7"} {
				if !strings.Contains(r.Stderr, want) {
					t.Errorf("%q is missing in:\n%s", want, r.Stderr)
				}
			}
			if entries, err := os.ReadDir(p.folder); err != nil || len(entries) != 1 {
				t.Errorf("written: %v, %v", entries, err)
			}
		})
	}
}

func TestBadUsageIsStatusTwo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"fly"}, {"poll", "--output", "xml"}, {"poll", "--fast"}, {"poll", "now"}, {"serve", "now"}, {"run", "--fast"}, {"version", "--long"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			if r := (feedscale{}).run(t, args...); r.Status != 2 || r.Stdout != "" || r.Stderr == "" {
				t.Errorf("status %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	asked := [][]string{{"help"}, {"-h"}, {"-help"}, {"--help"}, {"poll", "-h"}, {"poll", "--output", "xml", "-help"}}
	for _, c := range commands() {
		asked = append(asked, []string{c.Make(program.Env{}).Name(), "--help"})
	}
	for _, args := range asked {
		if r := (feedscale{}).run(t, args...); r.Status != 0 || !strings.Contains(r.Stdout, "usage: feedscale") || r.Stderr != "" {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, r.Status, r.Stdout, r.Stderr)
		}
	}
}

func TestUnderAFunctionsHostTheCommandIsServe(t *testing.T) {
	t.Parallel()
	r := feedscale{settings: map[string]string{"FUNCTIONS_CUSTOMHANDLER_PORT": "7071", "FEEDSCALE_CONCURRENCY": "none"}}.run(t)
	if r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, "FEEDSCALE_CONCURRENCY") {
		t.Errorf("%+v", r)
	}
}

func TestAnAddressThatIsTakenIsAMistakeOfTheConfiguration(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	p.settings["FEEDSCALE_LISTEN"] = strings.TrimSuffix(strings.TrimPrefix(w.Account.Endpoint(), "http://"), "/")
	if r := p.run(t, "run"); r.Status != 2 || !strings.Contains(r.Stderr, "set FEEDSCALE_LISTEN to another address") {
		t.Errorf("%+v", r)
	}
	p.leavesNoFile(t)
}

func TestVersionSaysWhatWasBuiltAndFromWhat(t *testing.T) {
	t.Parallel()
	if r := (feedscale{}).run(t, "version"); r.Status != 0 || !regexp.MustCompile(`^feedscale v1\.2\.3 go1\.\S+ \S+/\S+\n$`).MatchString(r.Stdout) {
		t.Errorf("status %d, %q", r.Status, r.Stdout)
	}
	if of := program.OS("").Version; of == "" {
		t.Error("a build without a release has no version")
	}
}
