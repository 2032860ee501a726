package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/report"
)

// Init writes the processors file from what an account holds, and checks it, as Check does.
func Init(kinds actions.Kinds) Command {
	return func(env Env) *cobra.Command {
		c := &cobra.Command{
			Use: "init [SETTING]", Short: "write the processors file from the leases that an account holds, and check it",
			Example:     "feedscale init\nfeedscale init BILLING --database invoices --config billing.yaml",
			Annotations: Settings("FEEDSCALE_CONFIG", "NO_COLOR", "COLUMNS"),
			Args:        cobra.ArbitraryArgs,
		}
		database := c.Flags().String("database", "", "look for leases in this database alone, and not in all of the account")
		file := c.Flags().String("config", "", "the `file` to write, where there is none yet; setting FEEDSCALE_CONFIG (default processors.yaml)")
		c.RunE = func(c *cobra.Command, names []string) error {
			var mistakes flagMistakes
			if len(names) > 1 {
				mistakes.add("%s are several settings; allowed is one, the connection of the account, COSMOS where it is left out", listed(names))
			}
			if err := mistakes.refuse(env.Stderr, "init"); err != nil {
				return err
			}
			setting := "COSMOS"
			if len(names) > 0 {
				setting = names[0]
			}
			return writeProcessors(c.Context(), env, setting, *database, cmp.Or(*file, env.Getenv("FEEDSCALE_CONFIG"), "processors.yaml"), kinds)
		}
		return c
	}
}

// writeProcessors finds what the account of a setting holds, writes the file, and checks it.
func writeProcessors(ctx context.Context, env Env, setting, database, file string, kinds actions.Kinds) error {
	if _, err := os.Lstat(file); err == nil {
		return Usage(isThere(file, "--config")) // before the account is asked
	}
	found, err := lookInto(ctx, env, setting,
		func(account *cosmos.Account, connection config.CosmosConnection) (discover.Found, error) {
			return discover.Account(ctx, account, connection, database, env.Now)
		})
	if err != nil {
		return err
	}
	if err := console.WriteFound(env.Stdout, found, env.Style()); err != nil {
		return err
	}
	text, err := console.ProcessorsFile(found, env.Now())
	if err != nil {
		return err
	}
	switch {
	case len(found.Leases) == 0:
		return fmt.Errorf("no container that was looked at holds leases: %s is not written; a processor that has never run keeps none, and one may keep its leases in another account", file)
	case found.Entries() == 0:
		fmt.Fprintf(env.Stdout, "\n%s", text)
		return fmt.Errorf("no processor could be told in full: %s is not written; fill in what the comments above leave open", file)
	}
	if err := WriteNew(file, []byte(text), "--config"); err != nil {
		return Usage(err)
	}
	written := fmt.Sprintf("%s is written: %s. What is left for you to decide stands in its comments. feedscale check says of it:", file, report.Count(found.Entries(), "processor"))
	fmt.Fprintf(env.Stdout, "\n%s\n\n", console.Wrap(written, "  ", env.Style().Width))
	return checkAll(ctx, env, checkChoice{file: file, output: "table", timeout: time.Minute}, kinds)
}

// WriteNew writes a file where there is none. flag is the one that names it.
func WriteNew(name string, text []byte, flag string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return isThere(name, flag)
	}
	if err != nil {
		return fmt.Errorf("the processors file cannot be written: %w", err)
	}
	if _, err := file.Write(text); err != nil {
		file.Close()
		return fmt.Errorf("the processors file cannot be written: %w", err)
	}
	return file.Close()
}

func isThere(name, flag string) error {
	return fmt.Errorf("%s is there already, and is not written over; name another file with %s, or move it away", name, flag)
}
