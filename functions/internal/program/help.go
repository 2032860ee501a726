package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/docs"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// environment is the annotation with the settings of a command.
const environment = "environment"

// Settings names the settings that a command reads, for its help.
func (f *Flags) Settings(names ...string) {
	f.Annotations = map[string]string{environment: strings.Join(names, " ")}
}

// setting finds the name, the default, what is allowed and the meaning of each setting in docs/configure.md.
var setting = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|(?: (.+))? \\| (.+) \\| (.+) \\|$")

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
		for _, row := range setting.FindAllStringSubmatch(docs.Configure, -1) {
			if slices.Contains(names, row[1]) {
				b.WriteString(console.Wrap(docs.Plain(fmt.Sprintf("  %-24s  %s (%s; default %s)", row[1], row[4], row[3], cmp.Or(row[2], "none"))), strings.Repeat(" ", 28), width) + "\n")
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
