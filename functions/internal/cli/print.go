package cli

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/shadow"
)

// Schema prints the JSON Schema of the processors file, of a scale event, or of a report.
func Schema(env program.Env) *cobra.Command {
	return &cobra.Command{
		Use: "schema [processors|event|report]", Short: "print the JSON Schema of the processors file, of a scale event, or of a report",
		Example:   "feedscale schema > processors.schema.json\nfeedscale schema event",
		ValidArgs: []string{"processors", "event", "report"},
		RunE: func(c *cobra.Command, names []string) error {
			name := cmp.Or(strings.Join(names, " "), "processors")
			schema, ok := map[string]string{"processors": config.Schema(), "event": events.Schema(), "report": shadow.Schema()}[name]
			if !ok {
				return program.Unknown("schema of", name, c.ValidArgs)
			}
			_, err := io.WriteString(env.Stdout, schema)
			return err
		},
	}
}
