// Package cli is the command line: one file for each command, which has its flags, calls what does the
// work, and prints what comes of it. print.go has those that only print a text. What a program offers is
// the list of commands that its main hands to [Main]; the commands that need a stand-in or client-go are
// in functions/cmd/feedscale, since the deployed handler must not link them.
//
// Start with [Main], [Env] and, for a command, leases.go. What reads the arguments is cobra
// (docs/decisions/0017-command-line-library.md).
//
// The package is internal to the program: its API may change in any release.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
)

// The exit statuses (docs/operate.md).
const (
	StatusOK         = 0
	StatusIncomplete = 1 // a processor is incomplete, an event is not published, or the program failed
	StatusUsage      = 2 // bad usage or configuration: nothing was started or written
)

// Failure is how a command ends other than well: with an exit status and, where Err is not nil, a
// sentence for standard error.
type Failure struct {
	Status int
	Err    error
}

// Error is the sentence.
func (f Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit status %d", f.Status)
	}
	return f.Err.Error()
}

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.Err }

// Usage is the Failure of bad usage or configuration; nil is one that was said already.
func Usage(err error) error { return Failure{StatusUsage, err} }

// Incomplete is the Failure of what was tried and did not work; nil is one that was said already.
func Incomplete(err error) error { return Failure{StatusIncomplete, err} }

// Command makes a subcommand for the process around it. Its RunE returns nil, or an error: a Failure has
// its own exit status, any other has that of Incomplete. Where it has no Args, it takes none.
type Command func(env Env) *cobra.Command

// handlerPort is set by a Functions host for the custom handler it starts.
const handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT"

// Main runs the command that the arguments name, prints why it failed, and returns the exit status.
// Under a Functions host the command may be left out: it is serve. elsewhere says, for a command that
// this program does not have, where it is to be found; "" = nowhere.
func Main(ctx context.Context, env Env, commands []Command, elsewhere string) int {
	env.Stderr = console.Lines{Writer: env.Stderr} // errors quote what others wrote
	args := append([]string{}, env.Args...)        // nil would be the arguments of the process
	for i, arg := range args {
		if arg == "-help" { // to pflag it is four flags of a letter each
			args[i] = "--help"
		}
	}
	if len(args) == 0 && env.Getenv(handlerPort) != "" {
		args = []string{"serve"}
	}
	root := newRoot(env, commands, elsewhere)
	root.SetArgs(tokenLast(args))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return StatusOK
	}
	failure, ok := errors.AsType[Failure](err)
	if !ok {
		failure = Failure{StatusIncomplete, err}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			failure.Err = errors.New("interrupted")
			wipe(env)
		}
	}
	if failure.Err != nil {
		for line := range strings.Lines(failure.Err.Error()) {
			fmt.Fprintf(env.Stderr, "feedscale: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return failure.Status
}

// The groups of the commands in the help.
const (
	GroupWork = "work" // set it up and let it run
	GroupLook = "look" // read, and change nothing
	GroupAct  = "act"  // do what was decided
	GroupTry  = "try"  // without an account
)

func newRoot(env Env, commands []Command, elsewhere string) *cobra.Command {
	root := &cobra.Command{
		Use: "feedscale COMMAND", Short: "scale Azure Cosmos DB change feed processors by how far behind they are",
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		SuggestionsMinimumDistance: 2,                   // edits
		Args:                       cobra.ArbitraryArgs, // RunE says which command there is none of
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	for _, group := range []string{GroupWork, GroupLook, GroupAct, GroupTry} {
		root.AddGroup(&cobra.Group{ID: group, Title: group})
	}
	ask := root.Flags().Bool("version", false, "print the version")
	unknown := func(name string) error {
		hint := meant(strings.Join(root.SuggestionsFor(name), " or "))
		return Usage(fmt.Errorf("there is no command %q%s\n'feedscale --help' lists the commands", name, cmp.Or(hint, elsewhere)))
	}
	root.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return unknown(args[0])
		case *ask:
			return printVersion(env)
		}
		writeHelp(env.Stderr, root, env.Style())
		return Usage(nil)
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c == root && len(args) > 0 {
			return unknown(args[0]) // the flag is one of a command that there is none of
		}
		return flagMistake(c, err)
	})
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(env.Stdout, c, env.Style()) })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "print the flags, settings and examples of a command", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, _ := root.Find(args)
			if c == root && len(args) > 0 {
				return unknown(args[0])
			}
			return c.Help()
		},
	})
	for _, command := range commands {
		c := command(env)
		c.Flags().SortFlags = false
		if c.Args == nil {
			c.Args = noArguments
		}
		root.AddCommand(c)
	}
	return root
}

// noArguments refuses what stands beside the flags.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%s: unexpected argument %q", c.Name(), args[0]))
	}
	return nil
}

// flagMistake says what is wrong with a flag, and which one may have been meant: one with a single dash,
// too.
func flagMistake(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		dashes, name := "--", unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			dashes, name = "-", short
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		near := config.Nearest(name, known)
		if near != "" {
			near = "--" + near
		}
		err = fmt.Errorf("there is no flag %s%s%s", dashes, name, meant(near))
	}
	if c.HasParent() {
		err = fmt.Errorf("%s: %w", c.Name(), err)
	}
	return Usage(fmt.Errorf("%w\n'%s --help' lists the flags", err, c.CommandPath()))
}

// meant asks for the nearest name; "" where none is near.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
