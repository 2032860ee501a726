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

// addConfig adds the flag that names the processors file.
func addConfig(c *cobra.Command) *string {
	return c.Flags().String("config", "", "the processors `file`; setting FEEDSCALE_CONFIG")
}

// processorNames completes the names of processors in the processors file that a flag names.
func processorNames(env Env, file *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := readConfig(env, *file)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, p := range c.Processors {
			if !slices.Contains(given, p.Name) {
				names = append(names, p.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// readConfig reads the settings and the processors file; "" is that of the settings.
func readConfig(env Env, file string) (config.Config, error) {
	return config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: bounded.ReadFile})
}

// configure is readConfig for a person: its mistakes are printed, each on a line of its own.
func configure(env Env, file string) (config.Config, error) {
	c, err := readConfig(env, file)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return config.Config{}, Usage(nil)
	}
	return c, nil
}

// settings reads the settings without the processors. Their mistakes are printed, each on a line of
// its own.
func settings(env Env) (config.Settings, error) {
	s, err := config.ReadSettings(env.Environ)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return config.Settings{}, Usage(nil)
	}
	return s, nil
}

// addURL adds the flag that names a feedscale elsewhere.
func addURL(c *cobra.Command) *string {
	return c.Flags().String("url", "", "the feedscale whose HTTP API is asked, such as "+
		"https://APP.azurewebsites.net; setting FEEDSCALE_URL, with the function key in FEEDSCALE_API_KEY. "+
		"Without it the state in FEEDSCALE_STATE is read")
}

// askable returns the API at an address, with the key of the settings.
func askable(url string, s config.Settings) (*connect.API, error) {
	api, err := connect.NewAPI(url, s.APIKey.Reveal())
	if err != nil {
		return nil, Usage(fmt.Errorf("--url, or FEEDSCALE_URL: %w", err))
	}
	return api, nil
}

// lookInto asks the account of a connection, and shows meanwhile that it waits.
func lookInto[T any](ctx context.Context, env Env, setting string,
	ask func(*cosmos.Account, config.CosmosConnection) (T, error)) (found T, err error) {
	settings, err := settings(env)
	if err != nil {
		return found, err
	}
	connection, err := config.ParseCosmosConnection(config.Lookup(env.Environ), setting)
	if err != nil {
		return found, Usage(err)
	}
	account, err := connect.New(settings).Account(connection)
	if err != nil {
		return found, Usage(err)
	}
	return await(ctx, env, "account "+connection.Host, func() (T, error) { return ask(account, connection) })
}
