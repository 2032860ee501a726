// Package program is what all commands share: the process around them ([Env]), the way from
// arguments to an exit status ([Main]), their flags and help, and what a terminal shows while they
// work. It knows no command and opens nothing; the commands are in functions/internal/cli and
// functions/cmd/feedscale.
//
// Start with [Main] and [Env]. Cobra reads the arguments
// (docs/decisions/0017-command-line-library.md).
//
// The package is internal to feedscale: its API may change in any release.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// The exit statuses (docs/operate.md).
const (
	StatusOK         = 0
	StatusIncomplete = 1 // a processor is incomplete, an event is not published, or the program failed
	StatusUsage      = 2 // bad usage or configuration: nothing was started or written
)

// Failure is the error of a command: its exit status and, unless Err is nil, a sentence for
// standard error.
type Failure struct {
	Status int
	Err    error
}

// Error is the sentence.
func (f Failure) Error() string { return fmt.Sprint(f.Err) }

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.Err }

// Usage is the Failure of bad usage or configuration. The err of a mistake that was printed already
// is nil.
func Usage(err error) error { return Failure{StatusUsage, err} }

// Completed is err, or else the Failure of a result that is not complete, which was printed already.
func Completed(complete bool, err error) error {
	if err == nil && !complete {
		return Failure{Status: StatusIncomplete}
	}
	return err
}

// Command makes a subcommand for a process: its Use, its help, its flags, and its work (Flags.Run).
// The work returns nil, or an error: a Failure has its own exit status, any other error
// StatusIncomplete. A command whose Use names no arguments takes none.
type Command func(env Env, f *Flags)

// Make makes the command.
func (c Command) Make(env Env) *cobra.Command {
	made := &cobra.Command{}
	made.Flags().SortFlags = false
	c(env, &Flags{Command: made, FlagSet: made.Flags()})
	return made
}

// Run is Main in the environment of OS, and ends this process. The context of the command ends with a
// signal that asks the process to end.
func Run(release string, commands []Command, elsewhere string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(Main(ctx, OS(release), commands, elsewhere))
}

// Main runs the command that the arguments name, prints why it failed, and returns the exit status.
// Each line of an error begins with "feedscale: ". Under a Functions host the default command is
// serve. elsewhere ends the error of a command that this program does not have; it says where to
// find it.
func Main(ctx context.Context, env Env, commands []Command, elsewhere string) int {
	env.Stderr = console.Lines{Writer: env.Stderr} // errors quote what others wrote
	args := append([]string{}, env.Args...)        // for cobra, nil means os.Args
	for i, arg := range args {
		if arg == "-help" { // pflag reads it as four flags of one letter
			args[i] = "--help"
		}
	}
	if len(args) == 0 && env.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT") != "" { // a Functions host sets it
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
		}
	}
	if failure.Err != nil {
		for line := range strings.Lines(failure.Err.Error()) {
			fmt.Fprintf(env.Stderr, "feedscale: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return failure.Status
}

// minusToken is the beginning of an EPK lease's token whose range has no lower bound.
var minusToken = regexp.MustCompile(`^-[0-9A-F]+…?$`)

// tokenLast puts such a token after the flags, of which it is none.
func tokenLast(args []string) []string {
	at := slices.IndexFunc(args, minusToken.MatchString)
	if at < 1 || args[0] != "inspect" || args[at-1] == "--count" || slices.Contains(args, "--") {
		return args
	}
	return slices.Concat(args[:at], args[at+1:], []string{"--", args[at]})
}

// The groups of commands in the help, in its order.
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
		Args:                       cobra.ArbitraryArgs, // RunE names the unknown command
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	for _, group := range []string{GroupWork, GroupLook, GroupAct, GroupTry} {
		root.AddGroup(&cobra.Group{ID: group, Title: group})
	}
	ask := root.Flags().Bool("version", false, "print the version")
	unknown := func(name string) error {
		hint := Meant(strings.Join(root.SuggestionsFor(name), " or "))
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
			return unknown(args[0]) // a flag of an unknown command
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
		root.AddCommand(command.Make(env))
	}
	return root
}

// Version is the command that prints the version.
func Version(env Env, f *Flags) {
	f.Use, f.Short = "version", "print the version"
	f.Run(func(context.Context, []string) error { return printVersion(env) })
}

func printVersion(env Env) error {
	_, err := fmt.Fprintf(env.Stdout, "feedscale %s %s %s/%s\n", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// flagMistake says what is wrong with a flag, and suggests the nearest name, also for a single
// dash.
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
		err = fmt.Errorf("there is no flag %s%s%s", dashes, name, Meant(near))
	}
	return Usage(fmt.Errorf("%w\n'%s --help' lists the flags", err, c.CommandPath()))
}

// Unknown is the Failure of a name that is not among the known ones. It suggests the nearest, or else
// lists the first few that are allowed: there may be thousands of processors.
func Unknown(what, name string, known []string) error {
	const most = 8
	hint := Meant(config.Nearest(name, known))
	if hint == "" {
		if more := len(known) - most; more > 0 {
			known = append(known[:most:most], fmt.Sprintf("%d more", more))
		}
		hint = "; allowed are " + yamltree.AllOf(known)
	}
	return Usage(fmt.Errorf("there is no %s %q%s", what, name, hint))
}

// Meant asks whether the nearest name was meant; "" if there is none.
func Meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
