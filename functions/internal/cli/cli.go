// Package cli is the command line: one file for each command, which reads its flags, calls what does
// the work, and prints what comes of it. What a program offers is the list of commands that its main
// hands to [Main]; the commands that need a stand-in or client-go are in functions/cmd/feedscale,
// since the deployed handler must not link them.
//
// Start with [Main] and [Env].
//
// The package is internal to the program: its API may change in any release.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/console"
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

// Command is one subcommand.
type Command struct {
	Name, Summary string
	// Run returns nil, or an error: a Failure has its own exit status, any other has that of
	// Incomplete.
	Run func(ctx context.Context, env Env, args []string) error
}

// handlerPort is set by a Functions host for the custom handler it starts.
const handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT"

// Main runs the command that the arguments name, prints why it failed, and returns the exit status.
// Under a Functions host the command may be left out: it is serve. elsewhere says, for a command that
// this program does not have, where it is to be found; "" = nowhere.
func Main(ctx context.Context, env Env, commands []Command, elsewhere string) int {
	env.Stderr = console.Lines{Writer: env.Stderr} // errors quote what others wrote
	args := env.Args
	if len(args) == 0 && env.Getenv(handlerPort) != "" {
		args = []string{"serve"}
	}
	if len(args) == 0 {
		fmt.Fprint(env.Stderr, usage(commands))
		return StatusUsage
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(env.Stdout, usage(commands))
		return StatusOK
	}
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == args[0] })
	if i < 0 {
		fmt.Fprintf(env.Stderr, "feedscale: there is no command %q%s\n\n%s", args[0], elsewhere, usage(commands))
		return StatusUsage
	}
	err := commands[i].Run(ctx, env, args[1:])
	if err == nil {
		return StatusOK
	}
	failure, ok := errors.AsType[Failure](err)
	if !ok {
		failure = Failure{StatusIncomplete, err}
	}
	if failure.Err != nil {
		fmt.Fprintf(env.Stderr, "feedscale: %v\n", failure.Err)
	}
	return failure.Status
}

func usage(commands []Command) string {
	var b strings.Builder
	b.WriteString("feedscale scales Azure Cosmos DB change feed processors by how far behind they are.\n\nusage: feedscale COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-8s  %s\n", c.Name, c.Summary)
	}
	b.WriteString("\n'feedscale COMMAND --help' lists a command's flags.\n")
	return b.String()
}
