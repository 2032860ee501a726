package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/importer"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// importFiles makes a processors file from files of KEDA and of Azure Functions. The deployed
// handler does not link it.
func importFiles(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "import FILE...", "make a processors file from KEDA's ScaledObjects or from Functions triggers", program.GroupWork
	f.Example = "feedscale import scaledobject.yaml --config processors.yaml\nfeedscale import */function.json\n" +
		"kubectl get scaledobjects,triggerauthentications -A -o yaml | feedscale import -"
	to := f.String("config", "", "the file to write, which must not exist (default standard output)")
	form := f.StringP("output", "o", "yaml", "yaml, the only form")
	f.Check(func(names []string) {
		f.Mistake(*form != "yaml", "--output is %q; allowed is yaml. --config names the file to write", *form)
		f.Mistake(len(names) == 0, "name the files to import, as in feedscale import scaledobject.yaml, or feedscale import */function.json")
	})
	f.Run(func(_ context.Context, names []string) error { return runImport(env, names, *to) })
}

func runImport(env program.Env, names []string, to string) error {
	files, mistakes := readFiles(env, names)
	// The other files are still read, so that all mistakes are reported at once.
	result, err := importer.Convert(files, config.Lookup(env.Environ))
	if wrong, _ := errors.AsType[yamltree.Mistakes](err); len(files) > 0 || len(mistakes) == 0 {
		mistakes = append(mistakes, wrong...)
	}
	if len(mistakes) > 0 {
		return program.Usage(mistakes)
	}
	if to == "" {
		_, err = env.Stdout.Write(result.Processors)
	} else {
		err = cli.WriteNew(to, result.Processors)
	}
	if err != nil {
		return program.Usage(err)
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

// readFiles reads files, and standard input for -. The error names every file that cannot be read.
func readFiles(env program.Env, names []string) (files []importer.File, mistakes yamltree.Mistakes) {
	for _, name := range names {
		text, err := []byte(nil), error(nil)
		if name == "-" {
			name = "standard input"
			text, err = bounded.Read(name, env.Stdin)
		} else {
			text, err = bounded.ReadFile(name)
		}
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		if err != nil {
			mistakes = append(mistakes, yamltree.Mistake{File: name, Text: "cannot be read (" + err.Error() + ")"})
			continue
		}
		files = append(files, importer.File{Name: name, Text: text})
	}
	return files, mistakes
}
