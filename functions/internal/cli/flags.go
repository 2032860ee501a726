package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Flags are the flags of a command.
type Flags struct {
	*flag.FlagSet
	env Env
}

// NewFlags makes the flags of a command. synopsis is what its usage line has after its name.
func NewFlags(env Env, command, synopsis string) Flags {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(env.Stderr)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: feedscale %s\n", strings.TrimSpace(command+" "+synopsis))
		f.PrintDefaults()
	}
	return Flags{f, env}
}

// Parse reads the arguments of a command that has flags alone. Its error is a Failure that was said
// already: --help asks for status 0.
func (f Flags) Parse(args []string) error {
	names, err := f.ParseNames(args)
	if err == nil && len(names) > 0 {
		fmt.Fprintf(f.env.Stderr, "feedscale %s: unexpected argument %q\n", f.Name(), names[0])
		f.Usage()
		return Usage(nil)
	}
	return err
}

// ParseNames is Parse for a command that also takes names, before, between and behind its flags.
// Behind -- everything is a name.
func (f Flags) ParseNames(args []string) (names []string, err error) {
	if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "-help" || a == "--help" }) {
		f.SetOutput(f.env.Stdout)
	}
	for {
		switch err := f.FlagSet.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, Failure{Status: StatusOK}
		case err != nil:
			return nil, Usage(nil)
		}
		rest := f.Args()
		if read := len(args) - len(rest); len(rest) == 0 || read > 0 && args[read-1] == "--" {
			return append(names, rest...), nil
		}
		names, args = append(names, rest[0]), rest[1:]
	}
}

// flagMistakes is what is wrong with the flags of a command, so that all of it is said at once.
type flagMistakes []string

func (m *flagMistakes) add(format string, args ...any) {
	*m = append(*m, fmt.Sprintf(format, args...))
}

// choice adds a flag whose value is none of those allowed.
func (m *flagMistakes) choice(name, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		m.add("--%s is %q; allowed are %s", name, value, listed(allowed))
	}
}

// listed writes a list as a sentence has it: a, b and c.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// refuse prints the mistakes of a command, and returns the Failure for them; nil where there are none.
func (m flagMistakes) refuse(w io.Writer, command string) error {
	for _, mistake := range m {
		fmt.Fprintf(w, "feedscale %s: %s\n", command, mistake)
	}
	if len(m) > 0 {
		return Usage(nil)
	}
	return nil
}
