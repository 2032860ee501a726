package check_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// compiler is a false Bicep CLI that prints a warning about one file, and formats another
// differently.
const compiler = `#!/bin/sh
case "$*" in
"build WARNED "*) echo "WARNED(1,1) : Warning no-unused-params: unused" >&2 ;;
"format FORMATTED "*) echo "formatted otherwise" ;;
"format "*) cat "$2" ;;
"snapshot main.bicepparam --mode overwrite") echo "$COSMOS_ACCOUNT_ID$AZURE_ENV_NAME$GITHUB_ACTIONS" >main.snapshot.json ;;
"snapshot main.bicepparam --mode validate") test "$(cat main.snapshot.json)" = "$COSMOS_ACCOUNT_ID" || { echo "~ name"; exit 1; } ;;
esac
`

func TestTheTemplatesAreCompiledWithTheBicepCLI(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		warned, formatted string
		status            int
		want              string
	}{
		"sound ones pass":                      {status: 0, want: "infra/ compiles without a warning"},
		"a warning is a failure":               {warned: "main.bicep", status: 1, want: "Warning no-unused-params"},
		"so is a sample's":                     {warned: "containerapps/main.bicep", status: 1, want: "Warning no-unused-params"},
		"a file the formatter has otherwise":   {formatted: "modules/roles/queue.bicep", status: 1, want: "modules/roles/queue.bicep is not formatted"},
		"the file of parameters, formatted so": {formatted: "main.bicepparam", status: 1, want: "main.bicepparam is not formatted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bicep")
			script := strings.NewReplacer("WARNED ", tt.warned+" ", "FORMATTED", tt.formatted, ">main.snapshot.json", "").Replace(compiler)
			testworld.Must(t, os.WriteFile(file, []byte(script), 0o700))
			command := exec.CommandContext(t.Context(), "./compile.sh", file)
			output, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(output), tt.want) {
				t.Errorf("status %d, want %d, with %q in:\n%s", got, tt.status, tt.want, output)
			}
		})
	}
}

func TestWhatTheSampleExpandsToIsComparedWithWhatItWas(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testworld.Must(t, os.CopyFS(folder, os.DirFS("..")))
	testworld.Must(t, os.RemoveAll(filepath.Join(folder, "main.snapshot.json")))
	file := filepath.Join(folder, "bicep")
	testworld.Must(t, os.WriteFile(file, []byte(compiler), 0o700))
	compile := func() (output string, err error) {
		command := exec.CommandContext(t.Context(), filepath.Join(folder, "check", "compile.sh"), file)
		command.Env = append(os.Environ(), "AZURE_ENV_NAME=mine", "GITHUB_ACTIONS=true")
		printed, err := command.CombinedOutput()
		return string(printed), err
	}
	if output, err := compile(); err != nil || !strings.Contains(output, "main.snapshot.json is new: commit it") {
		t.Errorf("without a snapshot: %v\n%s", err, output)
	}
	if output, err := compile(); err != nil || strings.Contains(output, "is new") {
		t.Errorf("with the same: %v\n%s", err, output)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(folder, "main.snapshot.json"), []byte("another"), 0o600))
	if output, err := compile(); err == nil || !strings.Contains(output, "~ name") {
		t.Errorf("with another: %v\n%s", err, output)
	}
}

func TestWithoutTheBicepCLIMakeInfraSaysHowToGetIt(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "make", "infra", "BICEP="+filepath.Join(t.TempDir(), "bicep"))
	command.Dir = filepath.Join("..", "..")
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "az bicep install") {
		t.Errorf("%v, want a failure that names az bicep install:\n%s", err, output)
	}
}

func TestEveryRuleThatATemplateTurnsOffIsOn(t *testing.T) {
	t.Parallel()
	var c struct {
		Analyzers struct {
			Core struct {
				Rules map[string]struct{ Level string }
			}
		}
	}
	testworld.Must(t, json.Unmarshal([]byte(read(t, "infra", "bicepconfig.json")), &c))
	for name, rule := range c.Analyzers.Core.Rules {
		// A rule with the level error could stop users from deploying with a newer Bicep.
		if rule.Level != "warning" {
			t.Errorf("%s has the level %q, want warning", name, rule.Level)
		}
	}
	for name, source := range templates(t) {
		for _, rule := range regexp.MustCompile(`#disable-next-line (\S+)`).FindAllStringSubmatch(source, -1) {
			if c.Analyzers.Core.Rules[rule[1]].Level == "" {
				t.Errorf("infra/%s turns off %s, which infra/bicepconfig.json does not turn on", name, rule[1])
			}
		}
	}
}
