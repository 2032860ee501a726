package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// environment is the annotation with the settings of a command.
const environment = "environment"

// Settings names the settings that a command reads, for its help.
func (f *Flags) Settings(names ...string) {
	f.Annotations = map[string]string{environment: strings.Join(names, " ")}
}

// settingMeanings has a line of help for each setting, in the order of the help. docs/configure.md
// describes them in full.
var settingMeanings = [][2]string{
	{"FEEDSCALE_CONFIG", "the processors file, unless --config names it; processors.yaml by default"},
	{"FEEDSCALE_PROCESSORS", "the content of the processors file; it wins over the file"},
	{"FEEDSCALE_STATE", "where states are stored: bolt:PATH, table:SETTING/TABLE, or the https address of a table"},
	{"FEEDSCALE_EVENTS", "where decisions go: stdout: or servicebus:SETTING/QUEUE"},
	{"FEEDSCALE_TIMER_SCHEDULE", "when to poll, as NCRONTAB; */15 * * * * * by default"},
	{"FEEDSCALE_LISTEN", "host:port of HTTP; 127.0.0.1:7071 by default"},
	{"FEEDSCALE_HEALTH_LISTEN", "host:port of /healthz alone, for probes"},
	{"FEEDSCALE_SCALER_LISTEN", "host:port of KEDA's external scaler"},
	{"FEEDSCALE_URL", "the address of a running feedscale, unless --url names it"},
	{"FEEDSCALE_API_KEY", "the key of the HTTP API: callers send it; beyond loopback feedscale requires it"},
	{"FEEDSCALE_WEBHOOK_SECRET", "the secret that signs the webhook's requests"},
	{"FEEDSCALE_RU_BUDGET", "request units a second that polls may use"},
	{"FEEDSCALE_TICK_TIMEOUT", "deadline of one tick; 60s by default"},
	{"FEEDSCALE_LOG_LEVEL", "debug, info, warn or error"},
	{"NO_COLOR", "any value switches colors off"},
	{"COLUMNS", "the width of the output, in characters, without a terminal"},
}

// helpWidth is the greatest length of a line of help, in characters.
const helpWidth = 100

// writeHelp prints the usage of a command, its subcommands, flags, settings and examples.
func writeHelp(w io.Writer, c *cobra.Command, style console.Style) {
	c.InitDefaultHelpFlag()
	width := min(cmp.Or(style.Width, helpWidth), helpWidth)
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", c.UseLine(), console.Wrap(strings.ToUpper(c.Short[:1])+c.Short[1:]+".", "", width))
	for _, group := range append(c.Groups(), &cobra.Group{Title: "other commands"}) {
		title := "\n" + group.Title + ":\n"
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group.ID {
				b.WriteString(title + console.Wrap(fmt.Sprintf("  %-*s  %s", c.NamePadding(), sub.Name(), sub.Short), strings.Repeat(" ", c.NamePadding()+4), width) + "\n")
				title = ""
			}
		}
	}
	b.WriteString("\nflags:\n" + c.Flags().FlagUsagesWrapped(width))
	if names := strings.Fields(c.Annotations[environment]); len(names) > 0 {
		b.WriteString("\nenvironment:\n")
		for _, setting := range settingMeanings {
			if slices.Contains(names, setting[0]) {
				b.WriteString(console.Wrap(fmt.Sprintf("  %-24s  %s", setting[0], setting[1]), strings.Repeat(" ", 28), width) + "\n")
			}
		}
	}
	if c.Example != "" {
		b.WriteString("\nexamples:\n")
		for example := range strings.Lines(c.Example) {
			b.WriteString("  " + example)
		}
		b.WriteString("\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' lists a command's flags.\n", c.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // nobody could be told of an error
}

// Completion prints the script by which a shell completes commands, flags and names.
func Completion(env Env, f *Flags) {
	f.Use, f.Short = "completion SHELL", "print the completion script of a shell: bash, zsh, fish or powershell"
	f.Example = "source <(feedscale completion bash)   # in ~/.bashrc; with the package bash-completion\n" +
		"feedscale completion zsh > \"${fpath[1]}/_feedscale\"   # once; with autoload -U compinit; compinit\n" +
		"feedscale completion fish > ~/.config/fish/completions/feedscale.fish   # once\n" +
		"feedscale completion powershell | Out-String | Invoke-Expression   # in $PROFILE"
	f.ValidArgs = []string{"bash", "zsh", "fish", "powershell"}
	f.Run(func(_ context.Context, args []string) error {
		if len(args) != 1 {
			return Usage(fmt.Errorf("name one shell; allowed are %s", yamltree.AllOf(f.ValidArgs)))
		}
		switch args[0] {
		case "bash":
			return f.Root().GenBashCompletionV2(env.Stdout, true)
		case "zsh":
			return f.Root().GenZshCompletion(env.Stdout)
		case "fish":
			return f.Root().GenFishCompletion(env.Stdout, true)
		case "powershell":
			return f.Root().GenPowerShellCompletionWithDesc(env.Stdout)
		}
		return Unknown("completion for", args[0], f.ValidArgs)
	})
}
