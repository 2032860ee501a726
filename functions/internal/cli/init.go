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

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Init writes the processors file from the leases of an account, and runs Check.
func Init(kinds actions.Kinds) program.Command {
	return func(env program.Env, f *program.Flags) {
		f.Use, f.Short, f.GroupID = "init [SETTING]", "write the processors file from the leases in an account, and check it", program.GroupWork
		f.Example = "feedscale init\nfeedscale init BILLING --database invoices --config billing.yaml"
		f.Settings("FEEDSCALE_CONFIG", "NO_COLOR", "COLUMNS")
		var database, file string
		f.Text(&database, "database", "name", "look for leases in this database alone")
		f.Text(&file, "config", "path", "the file to write, which must not exist; setting FEEDSCALE_CONFIG (default processors.yaml)")
		f.Check(func(names []string) {
			f.Mistake(len(names) > 1, "%s are several settings; name one, the connection of the account (default COSMOS)", yamltree.AllOf(names))
		})
		f.Run(func(ctx context.Context, names []string) error {
			setting := cmp.Or(strings.Join(names, ""), "COSMOS")
			return writeProcessors(ctx, env, setting, database, cmp.Or(file, env.Getenv("FEEDSCALE_CONFIG"), "processors.yaml"), kinds)
		})
	}
}

// writeProcessors writes the file from the leases in the account of a setting, and checks it.
func writeProcessors(ctx context.Context, env program.Env, setting, database, file string, kinds actions.Kinds) error {
	if _, err := os.Lstat(file); err == nil {
		return program.Usage(isThere(file)) // before the account is asked
	}
	found, err := lookInto(ctx, env, setting,
		func(account *cosmos.Account, connection config.CosmosConnection) (discover.Discovery, error) {
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
		return fmt.Errorf("no container that was looked at holds leases, so %s is not written: a processor that never ran has none, or its leases are in another account", file)
	case found.Entries() == 0:
		fmt.Fprintf(env.Stdout, "\n%s", text)
		return fmt.Errorf("the leases describe no processor completely, so %s is not written: the comments above say why", file)
	}
	if err := WriteNew(file, []byte(text)); err != nil {
		return program.Usage(err)
	}
	written := fmt.Sprintf("%s is written: %s. Its comments list what you still have to decide. feedscale check says:", file, report.Count(found.Entries(), "processor"))
	fmt.Fprintf(env.Stdout, "\n%s\n\n", console.Wrap(written, "  ", env.Style().Width))
	return runCheck(ctx, env, checkOptions{file: file, timeout: time.Minute}, kinds)
}

// WriteNew writes a processors file. It is an error if the file exists.
func WriteNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return isThere(name)
	}
	if err == nil {
		_, err = file.Write(text)
		if err = errors.Join(err, file.Close()); err != nil {
			os.Remove(name) // half a file is of no use
		}
	}
	if err != nil {
		return fmt.Errorf("the processors file cannot be written: %w", err)
	}
	return nil
}

func isThere(name string) error {
	return fmt.Errorf("%s exists, and is not overwritten; name another file with --config, or move it away", name)
}
