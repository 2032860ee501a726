package cli

import (
	"context"
	"fmt"
	"runtime"
)

// Version prints the version.
func Version() Command {
	return Command{"version", "print the version", func(_ context.Context, env Env, args []string) error {
		if err := NewFlags(env, "version", "").Parse(args); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "feedscale %s %s %s/%s\n", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}}
}
