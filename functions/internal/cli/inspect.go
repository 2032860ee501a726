package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
)

// Inspect prints which documents are the first that a partition has not processed. It writes nothing.
func Inspect(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "inspect NAME PARTITION", "name the first documents that a partition has not processed", program.GroupLook
	f.Example = "feedscale inspect orders 3\nfeedscale inspect orders 05C1DF --count 5\nfeedscale inspect orders 3 --document --output json | jq '.documents[].document'"
	f.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS")
	var file, output string
	count := 1
	configFlag(f, env, &file)
	f.Output(&output, "table", "json")
	program.Number(f, &count, "count", program.WholeNumbers, 1, 100, "how many documents, of each range after a split; a page of the feed may have fewer")
	contents := f.Bool("document", false, "print the contents, too")
	f.Check(func(args []string) {
		f.Mistake(len(args) != 2, "name a processor and one of its partitions, as in feedscale inspect orders 3; feedscale poll --dry-run --partitions lists them")
	})
	f.Run(func(ctx context.Context, args []string) error {
		name := args[0]
		c, err := readNamed(env, file, args[:1])
		if err != nil {
			return err
		}
		at := slices.IndexFunc(c.Processors, func(p config.Processor) bool { return p.Name == name })
		p, err := misused(connect.New(c.Settings).Processor(c.Processors[at]))
		if err != nil {
			return err
		}
		found, err := program.Await(ctx, env, "the first documents of "+name, func(func(string)) (*discover.Inspection, error) {
			return discover.Inspect(ctx, p, args[1], count, *contents, env.Now())
		})
		switch {
		case errors.Is(err, discover.ErrPartition):
			return program.Usage(err)
		case err != nil:
			return err
		}
		return show(env, output, found, func() error { return console.WriteInspection(env.Stdout, found, env.Style()) })
	})
}
