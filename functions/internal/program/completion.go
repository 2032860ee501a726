package program

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Completion prints the script by which a shell completes commands, flags and names.
func Completion(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "print the completion script of a shell: bash, zsh, fish or powershell",
		Example: "source <(feedscale completion bash)   # in ~/.bashrc; with the package bash-completion\n" +
			"feedscale completion zsh > \"${fpath[1]}/_feedscale\"   # once; with autoload -U compinit; compinit\n" +
			"feedscale completion fish > ~/.config/fish/completions/feedscale.fish   # once\n" +
			"feedscale completion powershell | Out-String | Invoke-Expression   # in $PROFILE",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usage(fmt.Errorf("name one shell; allowed are %s", Listed(c.ValidArgs)))
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
			}
			return Unknown("completion for", args[0], c.ValidArgs)
		},
	}
}
