package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/shadow"
)

// Version prints the version.
func Version(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version",
		RunE: func(*cobra.Command, []string) error { return printVersion(env) },
	}
}

func printVersion(env Env) error {
	_, err := fmt.Fprintf(env.Stdout, "feedscale %s %s %s/%s\n",
		env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// Schema prints the JSON Schema of the processors file, of a scale event, or of a report.
func Schema(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "schema [processors|event|report]", Short: "print the JSON Schema of the processors file, of a scale event, or of a report",
		Example:   "feedscale schema > processors.schema.json\nfeedscale schema event",
		ValidArgs: []string{"processors", "event", "report"},
		Args:      cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			name := "processors"
			if len(names) > 0 {
				name = names[0]
			}
			schema, ok := map[string]string{"processors": config.Schema(), "event": events.Schema(), "report": shadow.Schema()}[name]
			if !ok {
				return Usage(fmt.Errorf("schema: there is no schema of %q%s", name, meant(config.Nearest(name, c.ValidArgs))))
			}
			if len(names) > 1 {
				return noArguments(c, names[1:])
			}
			_, err := io.WriteString(env.Stdout, schema)
			return err
		},
	}
}

// Completion prints what has a shell complete commands, flags and names.
func Completion(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "print what has a shell complete commands, flags and names: bash, zsh, fish or powershell",
		Example: "source <(feedscale completion bash)   # in ~/.bashrc; with the package bash-completion\n" +
			"feedscale completion zsh > \"${fpath[1]}/_feedscale\"   # once; with autoload -U compinit; compinit\n" +
			"feedscale completion fish > ~/.config/fish/completions/feedscale.fish   # once\n" +
			"feedscale completion powershell | Out-String | Invoke-Expression   # in $PROFILE",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usage(fmt.Errorf("completion: one shell is needed; allowed are %s", listed(c.ValidArgs)))
			}
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(env.Stdout, true)
			case "zsh":
				return c.Root().GenZshCompletion(env.Stdout)
			case "fish":
				return c.Root().GenFishCompletion(env.Stdout, true)
			case "powershell":
				return c.Root().GenPowerShellCompletionWithDesc(env.Stdout)
			default:
				return Usage(fmt.Errorf("completion: there is no completion for %q%s\nallowed are %s", args[0], meant(config.Nearest(args[0], c.ValidArgs)), listed(c.ValidArgs)))
			}
		},
	}
}
