//go:build browser

package dashboard_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var screenshots = flag.String("screenshots", "", "folder that takes pictures of the page")

// browser is the Chromium that is installed: CHROMIUM names another.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("Chromium was not found: install it, or set CHROMIUM to its path")
	return ""
}

// drive runs a script of testdata/browser, which prints a line of JSON for each rule.
func drive(t *testing.T, script string, worlds map[string]string, arguments ...string) {
	t.Helper()
	folder, err := npm.InstallFolder(t.Context(), "dashboard-browser", filepath.Join("testdata", "browser"))
	testworld.Must(t, err)
	given, err := json.Marshal(worlds)
	testworld.Must(t, err)
	node := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(folder, script), browser(t), string(given)}, arguments...)...)
	var stderr strings.Builder
	node.Stderr = &stderr
	output, err := node.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, node.Start())
	rules := 0
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var result struct{ Rule, Error string }
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			t.Errorf("the script says %s", lines.Text())
			continue
		}
		rules++
		t.Run(result.Rule, func(t *testing.T) {
			if result.Error != "" {
				t.Error(result.Error)
			}
		})
	}
	if err := node.Wait(); err != nil || rules == 0 {
		t.Fatalf("%d rules, %v\n%s", rules, cmp.Or(err, lines.Err()), stderr.String())
	}
}

// startDemo starts feedscale demo, whose page has controls, and returns where it is.
func startDemo(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "feedscale")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "demo", "-o", tool, "../cmd/feedscale").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	demo := exec.CommandContext(t.Context(), tool, "demo")
	demo.Env = []string{"FEEDSCALE_LISTEN=127.0.0.1:0", "TMPDIR=" + t.TempDir()}
	stdout, err := demo.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, demo.Start())
	t.Cleanup(func() {
		_ = demo.Process.Signal(os.Interrupt)
		_ = demo.Wait()
	})
	reader := bufio.NewReader(stdout)
	line, err := reader.ReadString('\n')
	testworld.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	_, address, _ := strings.Cut(line, "http://") // feedscale demo  0s  http://HOST/api/dashboard
	page, _, _ := strings.Cut("http://"+address, "/api/dashboard")
	return page
}

func TestThePageInChromium(t *testing.T) {
	t.Parallel()
	drive(t, "rules.mjs", map[string]string{"thirty": serveNight(t, 30), "many": serveNight(t, 5_000), "demo": startDemo(t)})
}

func TestPicturesOfThePage(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs(cmp.Or(*screenshots, t.TempDir()))
	testworld.Must(t, err)
	testworld.Must(t, os.MkdirAll(folder, 0o750))
	drive(t, "pictures.mjs", map[string]string{"three": serveNight(t, 3), "thirty": serveNight(t, 30), "hundreds": serveNight(t, 500), "many": serveNight(t, 5_000), "demo": startDemo(t)}, folder)
}
