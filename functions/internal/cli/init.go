package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
			Use: "init [SETTING]", Short: "write the processors file from the leases that an account holds, and check it", GroupID: GroupWork,
			Example:     "feedscale init\nfeedscale init BILLING --database invoices --config billing.yaml",
			Annotations: Settings("FEEDSCALE_CONFIG", "NO_COLOR", "COLUMNS"),
			Args:        cobra.ArbitraryArgs,
		}
		f := flagsOf(c)
		var database, file string
		f.text(&database, "database", "name", "look for leases in this database alone, and not in all of the account")
		f.text(&file, "config", "path", "where to write, if nothing is there yet; setting FEEDSCALE_CONFIG (default processors.yaml)")
		c.RunE = func(c *cobra.Command, names []string) error {
			f.mistake(len(names) > 1, "%s are several settings; allowed is one, the connection of the account, COSMOS where it is left out", listed(names))
			if err := f.mistakes(); err != nil {
				return err
			}
			setting := cmp.Or(strings.Join(names, ""), "COSMOS")
			return writeProcessors(c.Context(), env, setting, database, cmp.Or(file, env.Getenv("FEEDSCALE_CONFIG"), "processors.yaml"), kinds)
		}
		return c
	}
}

// writeProcessors finds what the account of a setting holds, writes the file, and checks it.
func writeProcessors(ctx context.Context, env Env, setting, database, file string, kinds actions.Kinds) error {
	if _, err := os.Lstat(file); err == nil {
		return Usage(isThere(file)) // before the account is asked
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
	if err := WriteNew(file, []byte(text)); err != nil {
		return Usage(err)
	}
	written := fmt.Sprintf("%s is written: %s. What is left for you to decide stands in its comments. feedscale check says of it:", file, report.Count(found.Entries(), "processor"))
	fmt.Fprintf(env.Stdout, "\n%s\n\n", console.Wrap(written, "  ", env.Style().Width))
	return runCheck(ctx, env, checkOptions{file: file, timeout: time.Minute}, kinds)
}

// WriteNew writes a processors file where there is none.
func WriteNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return isThere(name)
	}
	if err == nil {
		_, err = file.Write(text)
		if err = errors.Join(err, file.Close()); err != nil {
			os.Remove(name) // half of a file helps nobody
		}
	}
	if err != nil {
		return fmt.Errorf("the processors file cannot be written: %w", err)
	}
	return nil
}

func isThere(name string) error {
	return fmt.Errorf("%s is there already, and is not written over; name another file with --config, or move it away", name)
}
