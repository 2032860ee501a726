package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
)

// Schema prints the JSON Schema of the processors file, or of a scale event.
func Schema(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "schema [processors|event]", Short: "print the JSON Schema of the processors file, or of a scale event",
		Example:   "feedscale schema > processors.schema.json\nfeedscale schema event",
		ValidArgs: []string{"processors", "event"},
		Args:      cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			name := "processors"
			if len(names) > 0 {
				name = names[0]
			}
			schema, ok := map[string]string{"processors": config.Schema(), "event": events.Schema()}[name]
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
