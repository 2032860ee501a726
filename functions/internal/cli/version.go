package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Version prints the version.
func Version(env Env) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", RunE: func(*cobra.Command, []string) error { return printVersion(env) }}
}

func printVersion(env Env) error {
	_, err := fmt.Fprintf(env.Stdout, "feedscale %s %s %s/%s\n", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
