package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

func TestHelpNamesTheSettingsOfACommandAndHasExamples(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "configure.md"))
	testworld.Must(t, err)
	for _, make := range commands() {
		c := make.Make(program.Env{})
		help := (feedscale{}).run(t, c.Name(), "--help").Stdout
		settings := strings.Fields(c.Annotations["environment"])
		for _, name := range settings {
			if !strings.Contains(help, "\n  "+name+" ") || strings.HasPrefix(name, "FEEDSCALE_") && !strings.Contains(string(documented), "`"+name+"`") {
				t.Errorf("%s: %s is not explained in the help, or not documented", c.Name(), name)
			}
		}
		if simple := c.Name() == "version" || c.Name() == "schema" || c.Name() == "completion"; !simple && (len(settings) == 0 || !strings.Contains(help, "\nexamples:\n  ")) {
			t.Errorf("%s: no settings or no examples:\n%s", c.Name(), help)
		}
		for example := range strings.Lines(c.Example) {
			_, call, _ := strings.Cut(example, "feedscale ")
			if name, _, _ := strings.Cut(call, " "); strings.TrimSpace(name) != c.Name() {
				t.Errorf("%s: the example %q is not one of it", c.Name(), example)
			}
		}
	}
}

func TestHelpOfPoll(t *testing.T) {
	t.Parallel()
	for golden, width := range map[string]int{"help-poll": 0, "help-poll-terminal": 60} {
		testworld.Golden(t, *update, golden, feedscale{width: width}.run(t, "help", "poll").Stdout)
	}
}

func TestAMistypedNameGetsTheNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		args []string
		says string
	}{
		{"a command", []string{"pol"}, `there is no command "pol"; did you mean poll?`},
		{"one with flags that only it could have", []string{"chek", "--timeout", "3s"}, `there is no command "chek"; did you mean check?`},
		{"one to be helped with", []string{"help", "simluate"}, `there is no command "simluate"; did you mean simulate?`},
		{"one that is like none", []string{"fly"}, "there is no command \"fly\"\n"},
		{"a flag", []string{"poll", "--explian"}, "there is no flag --explian; did you mean --explain?"},
		{"a flag with one dash", []string{"poll", "-config", "f"}, "there is no flag -config; did you mean --config?"},
		{"a flag of the program", []string{"--versoin"}, "there is no flag --versoin; did you mean --version?"},
		{"a flag without its value", []string{"poll", "--config"}, "flag needs an argument: --config"},
		{"an argument of a command that has none", []string{"leases", "orders"}, `unexpected argument "orders"`},
		{"a schema", []string{"schema", "evnt"}, `there is no schema of "evnt"; did you mean event?`},
		{"a shell", []string{"completion", "bsh"}, `there is no completion for "bsh"; did you mean bash?`},
		{"a shell that nothing is near", []string{"completion", "nushell9"}, `there is no completion for "nushell9"; allowed are bash, zsh, fish and powershell`},
		{"no shell", []string{"completion"}, "name one shell; allowed are bash, zsh, fish and powershell"},
		{"a status", []string{"poll", "--status", "stuck"}, `--status is "stuck"; allowed are unknown, stalled,`},
		{"an order", []string{"poll", "--sort", "size"}, `--sort is "size"; allowed are status, lag, age, replicas and name`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if r := (feedscale{}).run(t, c.args...); r.Status != 2 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "feedscale: "+c.says) {
				t.Errorf("status %d, stdout %q, stderr %s", r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	t.Parallel()
	if flag, command := (feedscale{}).run(t, "--version"), (feedscale{}).run(t, "version"); flag != command {
		t.Errorf("%+v, and the command %+v", flag, command)
	}
}

func TestSchemaPrintsThoseOfTheProcessorsFileAndOfAnEvent(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": config.Schema(), "processors": config.Schema(), "event": events.Schema()} {
		if r := (feedscale{}).run(t, strings.Fields("schema "+name)...); r.Status != 0 || r.Stdout != want {
			t.Errorf("%q: %+v", name, r)
		}
	}
}

func TestBashParsesItsCompletion(t *testing.T) {
	t.Parallel()
	parsesItsCompletion(t, "bash", "bash", "-n")
}

// parsesItsCompletion holds that a tool takes the completion of a shell, whose file follows its arguments,
// and says nothing; and that it does not take one with a mistake.
func parsesItsCompletion(t *testing.T, shell, tool string, args ...string) {
	t.Helper()
	r := (feedscale{}).run(t, "completion", shell)
	if r.Status != 0 || !strings.Contains(r.Stdout, "__complete") {
		t.Fatalf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "completion")
	for text, sound := range map[string]bool{r.Stdout: true, r.Stdout + "if (": false} {
		testworld.Must(t, os.WriteFile(file, []byte(text), 0o600))
		output, err := exec.CommandContext(t.Context(), tool, append(args, file)...).CombinedOutput()
		if (err == nil && len(output) == 0) != sound {
			t.Errorf("sound: %t; %v: %s", sound, err, output)
		}
	}
}

func TestNamesAndValuesAreCompleted(t *testing.T) {
	t.Parallel()
	p := feedscale{settings: map[string]string{
		"COSMOS":               "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=c2VjcmV0;",
		"FEEDSCALE_PROCESSORS": "{defaults: {connection: COSMOS, databaseId: shop}, processors: [{name: orders, containerId: orders}, {name: views, containerId: views}]}",
	}}
	for _, c := range []struct {
		rule string
		args []string
		want string
	}{
		{"names", []string{"poll", ""}, "orders views"},
		{"those that are not there yet", []string{"poll", "orders", ""}, "views"},
		{"a form", []string{"poll", "--output", ""}, "table json"},
		{"an order", []string{"poll", "--sort", ""}, "status lag age replicas name"},
		{"a trace", []string{"simulate", "--trace", ""}, "steady ramp step sawtooth burst daily herd sparse"},
		{"a command", []string{"hist"}, "history"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := p.run(t, append([]string{"__complete"}, c.args...)...)
			var got []string
			for line := range strings.Lines(r.Stdout) {
				if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(name, ":") {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %s", got, c.want)
			}
		})
	}
	if r := (feedscale{settings: map[string]string{"FEEDSCALE_PROCESSORS": "{}"}}).run(t, "__complete", "poll", ""); !strings.HasPrefix(r.Stdout, ":") {
		t.Errorf("of a wrong file: %+v", r)
	}
}
