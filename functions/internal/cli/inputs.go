package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// configFlag adds the flag that names the processors file, whose processors shells offer as
// arguments.
func configFlag(f *program.Flags, env program.Env, at *string) {
	f.Text(at, "config", "path", "the processors file; setting FEEDSCALE_CONFIG")
	if strings.Contains(f.Use, "NAME") {
		f.CompleteArguments(processorNames(env, at))
	}
}

// listingFlags adds the flags that filter and sort many processors.
func listingFlags(f *program.Flags, l *console.Listing) {
	f.Choice(&l.Sort, "sort", "", "order", strings.Join(console.Sorts(), ", ")+" (default status, the worst first, in the table; else as in the file)", console.Sorts()...)
	var names []string // worst first
	for _, s := range changefeed.Statuses() {
		names = append(names, string(s))
	}
	f.Add("status", "", "word", "only processors of this status; may be repeated, or a list with commas", "", func(text string) string {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(names, name) {
				return yamltree.AllOf(names)
			}
			l.Statuses = append(l.Statuses, changefeed.Status(name))
		}
		return ""
	})
	f.Complete("status", names...)
}

// processorNames are those in a processors file; none if it is wrong.
func processorNames(env program.Env, file *string) func() []string {
	return func() []string {
		c, _ := readConfig(env, *file)
		return names(c)
	}
}

// names are those of all processors.
func names(c config.Config) []string {
	all := make([]string, len(c.Processors))
	for i, p := range c.Processors {
		all[i] = p.Name
	}
	return all
}

// show prints a result as JSON, or else by a function.
func show(env program.Env, output string, result any, otherwise func() error) error {
	if output == "json" {
		return console.WriteJSON(env.Stdout, result)
	}
	return otherwise()
}

// readNamed is readConfig, and refuses names that no processor has.
func readNamed(env program.Env, file string, given []string) (config.Config, error) {
	c, err := readConfig(env, file)
	all := names(c)
	for _, name := range given {
		if err == nil && !slices.Contains(all, name) {
			err = program.Unknown("processor", name, all)
		}
	}
	return c, err
}

// misused turns an error into the Failure of bad usage.
func misused[T any](value T, err error) (T, error) {
	if err != nil {
		err = program.Usage(err)
	}
	return value, err
}

// unreadable is the Failure of a state that could not be read.
func unreadable(err error) error {
	if errors.Is(err, report.ErrUnknownName) || errors.Is(err, boltstore.ErrInUse) || errors.Is(err, boltstore.ErrDamaged) {
		return program.Usage(err)
	}
	return err
}

// readConfig reads the settings and the processors file. A file of "" is the one in the settings.
func readConfig(env program.Env, file string) (config.Config, error) {
	return misused(config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: bounded.ReadFile}))
}

// readSettings reads the settings alone.
func readSettings(env program.Env) (config.Settings, error) {
	return misused(config.ReadSettings(env.Environ))
}

// unlogged is the log of an app whose result says what is wrong.
var unlogged = slog.New(slog.DiscardHandler)

// options are those of an app in this process.
func options(env program.Env, log *slog.Logger, events io.Writer) app.Options {
	return app.Options{Log: log, EventLines: events, Version: env.Version, Now: env.Now}
}

// source is what a command reads: the API of a running feedscale, or the state.
type source struct {
	url, file string    // flags
	said      sync.Once // that a process is asked in place of the state file
}

func (s *source) flags(f *program.Flags, env program.Env) {
	s.urlFlag(f)
	configFlag(f, env, &s.file)
	f.Check(func([]string) {
		f.Mistake(s.url != "" && s.file != "", "--config: has no effect with --url; leave one of the two out")
	})
}

func (s *source) urlFlag(f *program.Flags) {
	f.Text(&s.url, "url", "address", "the feedscale whose HTTP API is asked, such as https://APP.azurewebsites.net; setting "+
		"FEEDSCALE_URL, with the function key in FEEDSCALE_API_KEY. Without it the state in FEEDSCALE_STATE is read")
}

// address is that of the API; "" if the state is to be read.
func (s *source) address(settings config.Settings) string {
	if s.url == "" && s.file == "" {
		return settings.URL
	}
	return s.url
}

// store opens what a command reads.
func (s *source) store(env program.Env) (state.Store, error) {
	settings, err := readSettings(env)
	if err != nil {
		return nil, err
	}
	if address := s.address(settings); address != "" {
		api, err := connect.NewAPI(address, settings.APIKey.Reveal())
		if err != nil {
			err = program.Usage(fmt.Errorf("--url, or FEEDSCALE_URL: %w", err))
		}
		return api, err
	}
	return s.open(env, settings)
}

// open opens the state to read it.
func (s *source) open(env program.Env, settings config.Settings) (state.Store, error) {
	store, err := connect.New(settings).Store(true)
	if api, asked := store.(*connect.API); asked {
		s.said.Do(func() {
			fmt.Fprintf(env.Stderr, "feedscale: another process has the state file open, and is asked at %s\n", api.Address())
		})
	}
	return store, err
}

// record opens what a command reads, until end.
func (s *source) record(env program.Env, log *slog.Logger) (record app.Record, end func(), err error) {
	store, err := s.store(env)
	if err != nil {
		return nil, nil, err
	}
	if api, asked := store.(*connect.API); asked { // which knows its processors
		return api, func() { api.Close() }, nil
	}
	c, err := readConfig(env, s.file)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	a, err := app.New(c, options(env, log, io.Discard), store)
	if err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}

// lookInto asks the account of a connection.
func lookInto[T any](ctx context.Context, env program.Env, setting string,
	ask func(*cosmos.Account, config.CosmosConnection) (T, error)) (found T, err error) {
	settings, err := readSettings(env)
	if err != nil {
		return found, err
	}
	connection, err := misused(config.ParseCosmosConnection(config.Lookup(env.Environ), setting))
	if err != nil {
		return found, err
	}
	account, err := misused(connect.New(settings).Account(connection))
	if err != nil {
		return found, err
	}
	return program.Await(ctx, env, "account "+connection.Host, func(func(string)) (T, error) { return ask(account, connection) })
}
