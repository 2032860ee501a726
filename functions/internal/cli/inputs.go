package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// processorNames completes the names of processors in the processors file that a flag names.
func processorNames(env Env, file *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, _ := readConfig(env, *file) // with mistakes, there are no names
		var names []string
		for _, p := range c.Processors {
			if !slices.Contains(given, p.Name) {
				names = append(names, p.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// misused makes an error the Failure of bad usage.
func misused[T any](value T, err error) (T, error) {
	if err != nil {
		err = Usage(err)
	}
	return value, err
}

// readConfig reads the settings and the processors file; "" is that of the settings.
func readConfig(env Env, file string) (config.Config, error) {
	return misused(config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: bounded.ReadFile}))
}

// readSettings reads the settings without the processors.
func readSettings(env Env) (config.Settings, error) {
	return misused(config.ReadSettings(env.Environ))
}

// source is what holds the states that a command reads: a feedscale elsewhere, or the state of these
// settings.
type source struct {
	url, file string // flags
}

func (s *source) flags(f *flags) {
	f.url(&s.url)
	f.file(&s.file)
}

// check adds that both are given.
func (s *source) check(f *flags) {
	f.mistake(s.url != "" && s.file != "", "--config: is of no use with --url; leave one of the two out")
}

// api is the feedscale that is to be asked; nil where the state is read.
func (s *source) api(settings config.Settings) (*connect.API, error) {
	url := s.url
	if url == "" && s.file == "" {
		url = settings.URL
	}
	if url == "" {
		return nil, nil
	}
	api, err := connect.NewAPI(url, settings.APIKey.Reveal())
	if err != nil {
		return nil, Usage(fmt.Errorf("--url, or FEEDSCALE_URL: %w", err))
	}
	return api, nil
}

// lookInto asks the account of a connection, and shows meanwhile that it waits.
func lookInto[T any](ctx context.Context, env Env, setting string,
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
	return await(ctx, env, "account "+connection.Host, func() (T, error) { return ask(account, connection) })
}
