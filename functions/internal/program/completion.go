package program

import (
	"context"
	"fmt"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

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
