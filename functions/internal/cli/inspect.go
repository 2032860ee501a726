package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
)

// Inspect prints which documents are the first that a partition has not processed. It writes nothing.
func Inspect(env program.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "inspect NAME PARTITION", Short: "name the first documents that a partition has not processed", GroupID: program.GroupLook,
		Example:     "feedscale inspect orders 3\nfeedscale inspect orders 05C1DF --count 5\nfeedscale inspect orders 3 --document --output json | jq '.documents[].document'",
		Annotations: program.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := program.FlagsOf(c)
	o := inspectOptions{count: 1}
	configFlag(f, &o.file)
	f.Output(&o.output, "table", "json")
	program.Number(f, &o.count, "count", program.WholeNumbers, 1, 100, "how many documents, of each range after a split; a page of the feed may have fewer")
	f.BoolVar(&o.contents, "document", false, "print the contents, too")
	c.ValidArgsFunction = processorNames(env, &o.file)
	c.RunE = func(c *cobra.Command, args []string) error {
		f.Mistake(len(args) != 2, "name a processor and one of its partitions, as in feedscale inspect orders 3; feedscale poll --dry-run --partitions lists them")
		if err := f.Mistakes(); err != nil {
			return err
		}
		return runInspect(c.Context(), env, o, args[0], args[1])
	}
	return c
}

type inspectOptions struct {
	file, output string // "" is the file of the settings
	count        int
	contents     bool
}

func runInspect(ctx context.Context, env program.Env, o inspectOptions, name, partition string) error {
	c, err := readConfig(env, o.file)
	if err != nil {
		return err
	}
	if err := known(c, []string{name}); err != nil {
		return err
	}
	at := slices.IndexFunc(c.Processors, func(p config.Processor) bool { return p.Name == name })
	p, err := misused(connect.New(c.Settings).Processor(c.Processors[at]))
	if err != nil {
		return err
	}
	found, err := program.Await(ctx, env, waitFor("the first documents of "+name), func() (*discover.Inspection, error) {
		return discover.Inspect(ctx, p, partition, o.count, o.contents, env.Now())
	})
	if errors.Is(err, discover.ErrPartition) {
		return program.Usage(err)
	}
	if err != nil {
		return err
	}
	if o.output == "json" {
		return console.WriteJSON(env.Stdout, found)
	}
	return console.WriteInspection(env.Stdout, found, env.Style())
}
