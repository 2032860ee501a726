package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
)

// Schema prints the JSON Schema of the processors file, or of a scale event.
func Schema(env Env) *cobra.Command {
	schemas := map[string]string{"processors": config.Schema(), "event": events.Schema()}
	return &cobra.Command{
		Use: "schema [processors|event]", Short: "print the JSON Schema of the processors file, or of a scale event",
		Example:   "feedscale schema > processors.schema.json\nfeedscale schema event",
		ValidArgs: []string{"processors", "event"},
		Args: func(c *cobra.Command, args []string) error {
			var mistakes flagMistakes
			if len(args) > 1 {
				return noArguments(c, args[1:])
			}
			for _, name := range args {
				if _, ok := schemas[name]; !ok {
					mistakes.add("there is no schema of %q; allowed are processors and event", name)
				}
			}
			return mistakes.refuse(env.Stderr, c.Name())
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name := "processors"
			if len(args) > 0 {
				name = args[0]
			}
			_, err := io.WriteString(env.Stdout, schemas[name])
			return err
		},
	}
}
