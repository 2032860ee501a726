package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/importer"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// importFiles makes a processors file from files of KEDA and of Azure Functions. The deployed handler
// has no use for it, and does not link it.
func importFiles(env cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "import FILE...", Short: "make a processors file from KEDA's ScaledObjects or from Functions triggers",
		Example: "feedscale import scaledobject.yaml -o processors.yaml\nfeedscale import host.json */function.json local.settings.json",
		Args:    cobra.ArbitraryArgs,
	}
	output := c.Flags().StringP("output", "o", "", "write the processors file to this `file`, where there is none yet, and not to standard output")
	c.RunE = func(_ *cobra.Command, names []string) error { return runImport(env, names, *output) }
	return c
}

func runImport(env cli.Env, names []string, output string) error {
	if len(names) == 0 {
		fmt.Fprintln(env.Stderr, "feedscale import: the files to import are missing, as in feedscale import scaledobject.yaml, or feedscale import host.json */function.json local.settings.json")
		return cli.Usage(nil)
	}
	files, mistakes := readFiles(names)
	// Those that can be read are looked at all the same, so that everything is said at once.
	result, err := importer.Convert(files, config.Lookup(env.Environ))
	if wrong, ok := errors.AsType[yamltree.Mistakes](err); ok && (len(files) > 0 || len(mistakes) == 0) {
		mistakes = append(mistakes, wrong...)
	} else if err != nil && !ok {
		return err
	}
	if len(mistakes) > 0 {
		fmt.Fprintln(env.Stderr, mistakes)
		return cli.Usage(nil)
	}
	if output == "" {
		if _, err := env.Stdout.Write(result.Processors); err != nil {
			return err
		}
	} else if err := cli.WriteNew(output, result.Processors, "--output"); err != nil {
		return cli.Usage(err)
	}
	for _, r := range result.Remarks {
		fmt.Fprintln(env.Stderr, r)
	}
	if len(result.Settings) > 0 {
		fmt.Fprintln(env.Stderr, "\nsettings to make:")
		for _, s := range result.Settings {
			fmt.Fprintf(env.Stderr, "  %s\n", s)
		}
	}
	return nil
}

// readFiles reads the files, and says which cannot be read.
func readFiles(names []string) (files []importer.File, mistakes yamltree.Mistakes) {
	for _, name := range names {
		text, err := bounded.ReadFile(name)
		if err != nil {
			if cause, ok := errors.AsType[*fs.PathError](err); ok {
				err = cause.Err
			}
			mistakes = append(mistakes, yamltree.Mistake{File: name, Text: "cannot be read (" + err.Error() + ")"})
			continue
		}
		files = append(files, importer.File{Name: name, Text: text})
	}
	return files, mistakes
}
