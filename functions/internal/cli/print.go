package cli

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/shadow"
)

// Schema prints the JSON Schema of the processors file, of a scale event, or of a report.
func Schema(env program.Env, f *program.Flags) {
	f.Use, f.Short = "schema [processors|event|report]", "print the JSON Schema of the processors file, of a scale event, or of a report"
	f.Example = "feedscale schema > processors.schema.json\nfeedscale schema event"
	f.ValidArgs = []string{"processors", "event", "report"}
	f.Run(func(_ context.Context, names []string) error {
		name := cmp.Or(strings.Join(names, " "), "processors")
		schema, ok := map[string]string{"processors": config.Schema(), "event": events.Schema(), "report": shadow.Schema()}[name]
		if !ok {
			return program.Unknown("schema of", name, f.ValidArgs)
		}
		_, err := io.WriteString(env.Stdout, schema)
		return err
	})
}
