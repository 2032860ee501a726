package main_test

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestLocalSettingsSampleIsComplete: the sample has what `func start` needs with the stand-ins at
// their default addresses and the staged processors file.
func TestLocalSettingsSampleIsComplete(t *testing.T) {
	t.Parallel()
	sample := sampleSettings(t)
	for _, name := range []string{"FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsStorage", "FEEDSCALE_TIMER_SCHEDULE"} {
		if sample[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if inline, ok := sample["FEEDSCALE_PROCESSORS"]; ok {
		t.Errorf("FEEDSCALE_PROCESSORS is %s, which goes before any processors.yaml", inline)
	}
	if got, want := sample["COSMOS"], "AccountEndpoint=http://127.0.0.1:8081/;AccountKey="+cosmosfake.WellKnownKey+";"; got != want {
		t.Errorf("COSMOS is %s, want %s", got, want)
	}
	want := "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=" + servicebusfake.DefaultKeyName + ";SharedAccessKey=" + servicebusfake.DefaultKey + ";UseDevelopmentEmulator=true"
	if got := sample["SERVICEBUS"]; got != want {
		t.Errorf("SERVICEBUS is %s, want %s", got, want)
	}
	settings := sample
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	settings["AzureWebJobsStorage"] = made(t, startTables).ConnectionString()
	r := command(t, t.TempDir(), settings, "poll", "--dry-run", "--output", "json", "--config", filepath.Join(made(t, stage), "processors.yaml"))
	if r.Status == 2 {
		t.Errorf("the sample is refused: %s", r.Stderr)
	}
}

func TestStagingTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	again := filepath.Join(t.TempDir(), "app")
	testworld.Must(t, makeDist(t.Context(), again))
	staged := made(t, stage)
	testworld.Must(t, filepath.WalkDir(staged, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, _ := filepath.Rel(staged, path)
		first, err := os.ReadFile(path)
		testworld.Must(t, err)
		second, err := os.ReadFile(filepath.Join(again, relative))
		testworld.Must(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs", relative)
		}
		return nil
	}))
}

// TestTheHandlerSaysItsVersionAndNoMoment: two builds of the same source differ only in the
// version, not by commit, time or changed files.
func TestTheHandlerSaysItsVersionAndNoMoment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(made(t, stage), "handler")
	built, err := buildinfo.ReadFile(file)
	testworld.Must(t, err)
	for _, setting := range built.Settings {
		if strings.HasPrefix(setting.Key, "vcs") {
			t.Errorf("%s is %s", setting.Key, setting.Value)
		}
	}
	handler := exec.CommandContext(t.Context(), file, "version")
	handler.Env = []string{"HOME=" + t.TempDir()}
	if r := testworld.Run(t, handler); !strings.HasPrefix(r.Stdout, "feedscale v1.2.3 ") {
		t.Errorf("%+v", r)
	}
}

func TestTheStagedFolderIsWhatTheHostNeeds(t *testing.T) {
	t.Parallel()
	want := []string{".funcignore", "dashboard/function.json", "handler", "history/function.json", "host.json", "local.settings.json", "metrics/function.json", "poll/function.json", "processors.yaml", "processors/function.json", "report/function.json"}
	for _, c := range []struct {
		staged string
		want   []string
	}{
		{made(t, stage), want},
		{made(t, stageFanOut), append(slices.Clone(want), "shard/function.json")},
	} {
		var got []string
		err := filepath.WalkDir(c.staged, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				relative, _ := filepath.Rel(c.staged, path)
				got = append(got, relative)
			}
			return err
		})
		testworld.Must(t, err)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("staged %q, want %q", got, c.want)
		}
		if info, err := os.Stat(filepath.Join(c.staged, "handler")); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("the handler cannot be executed: %v, %v", info, err)
		}
	}
}

// TestOnlyFanOutNeedsTheExtensionBundle, which a host fetches and loads at each start.
func TestOnlyFanOutNeedsTheExtensionBundle(t *testing.T) {
	t.Parallel()
	plain, fanOut := contentOf(t, filepath.Join(made(t, stage), "host.json")), contentOf(t, filepath.Join(made(t, stageFanOut), "host.json"))
	if plain != contentOf(t, "../host.json") || strings.Contains(plain, "extensionBundle") {
		t.Errorf("host.json is staged as %s", plain)
	}
	testworld.Must(t, schemaOf(t, "host.schema.json").Validate(instance(t, fanOut)))
	added := contentOf(t, "shard/host.part.json")
	if strings.Replace(fanOut, added, "", 1) != plain || !strings.Contains(added, `"maxConcurrentCalls": 1`) {
		t.Errorf("with the function shard host.json is %s", fanOut)
	}
}

// maxHandler is the size limit of the staged handler in bytes: a cold start loads all of it.
const maxHandler = 25 << 20

func TestTheHandlerIsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(filepath.Join(made(t, stage), "handler"))
	testworld.Must(t, err)
	if info.Size() > maxHandler {
		t.Errorf("the handler has %d bytes, more than %d", info.Size(), maxHandler)
	}
}

func TestTheHandlerSaysWhereTheOtherCommandsAre(t *testing.T) {
	t.Parallel()
	handler := exec.CommandContext(t.Context(), filepath.Join(made(t, stage), "handler"), "consume")
	handler.Env = []string{"HOME=" + t.TempDir()}
	output, err := handler.CombinedOutput()
	if err == nil || handler.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), `no command "consume" in the handler of a function app; the command-line tool may have it: go build ./functions/cmd/feedscale`) {
		t.Errorf("%v: %s", err, output)
	}
}
