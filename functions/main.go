// Command feedscale measures how far behind Azure Cosmos DB change feed
// processors are, decides how many replicas each needs, and publishes it: as an
// Azure Functions custom handler, or on its own.
//
// This package holds the subcommands and the wiring, nothing else; each
// subfolder is one Azure Function.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // schedules name IANA time zones, which a small image does not have
)

// The exit statuses (DESIGN 11).
const (
	exitOK         = 0
	exitIncomplete = 1 // a processor is incomplete, an event is not published, or the program failed
	exitUsage      = 2 // bad usage or configuration: nothing was started or written
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := program{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// program is the process around a command.
type program struct {
	environ        []string
	stdout, stderr io.Writer
}

// command is one subcommand.
type command struct {
	name, summary string
	run           func(p program, ctx context.Context, args []string) int
}

// commands are listed in the order of the usage text.
var commands = []command{
	{"serve", "be the custom handler of an Azure Functions host", program.serve},
	{"run", "poll and answer HTTP without a Functions host", program.runAlone},
	{"poll", "poll every processor once and print the result", program.poll},
	{"history", "chart what was measured and decided of a processor", program.history},
	{"simulate", "replay a trace against policies, to tune them", program.simulate},
	{"consume", "act on the scale events of a queue", program.consume},
	{"check", "try every name and permission, and say what mends what does not hold", program.check},
	{"leases", "list the processors that keep leases in a container", program.leases},
	{"demo", "run a world of embedded processors under load", program.demo},
	{"emulate", "serve stand-ins for Cosmos DB and Service Bus", program.emulate},
	{"version", "print the version", program.version},
}

// run runs the command that args name and returns the exit status. Under a
// Functions host the command may be left out.
func (p program) run(ctx context.Context, args []string) int {
	if len(args) == 0 && p.getenv(handlerPort) != "" {
		args = []string{"serve"}
	}
	if len(args) == 0 {
		fmt.Fprint(p.stderr, usage())
		return exitUsage
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(p.stdout, usage())
		return exitOK
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(p, ctx, args[1:])
		}
	}
	fmt.Fprintf(p.stderr, "feedscale: there is no command %q\n\n%s", args[0], usage())
	return exitUsage
}

func usage() string {
	var b strings.Builder
	b.WriteString("feedscale scales Azure Cosmos DB change feed processors by how far behind they are.\n\nusage: feedscale COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-8s  %s\n", c.name, c.summary)
	}
	b.WriteString("\n'feedscale COMMAND --help' lists a command's flags.\n")
	return b.String()
}

// getenv returns a variable of the environment, "" where it is not set.
func (p program) getenv(name string) string {
	for _, entry := range p.environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// flags makes the flag set of a command.
func (p program) flags(name, synopsis string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(p.stderr)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: feedscale %s\n", strings.TrimSpace(name+" "+synopsis))
		f.PrintDefaults()
	}
	return f
}

// parse parses a command's flags; where done is true, the command is to end
// with that status.
func (p program) parse(f *flag.FlagSet, args []string) (status int, done bool) {
	if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "-help" || a == "--help" }) {
		f.SetOutput(p.stdout)
	}
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, true
	case err != nil:
		return exitUsage, true
	case f.NArg() > 0:
		fmt.Fprintf(p.stderr, "feedscale %s: unexpected argument %q\n", f.Name(), f.Arg(0))
		f.Usage()
		return exitUsage, true
	}
	return exitOK, false
}

// fail prints why a command ends, and returns the status for it.
func (p program) fail(status int, err error) int {
	fmt.Fprintf(p.stderr, "feedscale: %v\n", err)
	return status
}
