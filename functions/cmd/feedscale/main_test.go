package main

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// update makes the tests rewrite the golden files, which are the terminal's output: go test
// ./functions/cmd/feedscale -update
var update = flag.Bool("update", false, "rewrite the golden files of this package")

// run runs a command of the tool without settings.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = program.Main(t.Context(), program.Env{
		Args: args, Stdout: &out, Stderr: &errs, Now: time.Now, Version: "v1.2.3",
		Terminal: func() (width, height int, ok bool) { return 0, 0, false },
	}, commands(), "")
	return status, out.String(), errs.String()
}

func TestTheUsageListsEveryCommand(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := run(t, "help")
	if status != 0 || stderr != "" {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
	testworld.Golden(t, *update, "usage", stdout)
	if status, again, stderr := run(t); status != 2 || again != "" || stderr != stdout {
		t.Errorf("without a command: status %d, stdout %q, stderr %q", status, again, stderr)
	}
}

func TestEveryCommandListsItsFlags(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		name := c.Make(program.Env{}).Name()
		status, stdout, stderr := run(t, name, "--help")
		if status != 0 || !strings.HasPrefix(stdout, "usage: feedscale "+name) || stderr != "" {
			t.Errorf("%s: status %d, stdout %q, stderr %q", name, status, stdout, stderr)
		}
	}
}

func TestStandInsThatAreNotDescribedWellAreNotStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--container", "orders"}, "allowed is DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]]"},
		{[]string{"--container", "shop/orders:none"}, "allowed is DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]]"},
		{[]string{"--container", "shop/orders:4:id"}, "allowed is DATABASE/CONTAINER[:PARTITIONS[:/PARTITIONKEY]]"},
		{[]string{"--queue", "q:fifo"}, "allowed is NAME[:sessions]"},
		{[]string{"--topic", ""}, "allowed is NAME"},
		{[]string{"--topic", "decisions/subscriptions/a"}, "stands between a topic and its subscription"},
		{[]string{"--subscription", "decisions/a"}, "allowed is TOPIC/Subscriptions/NAME"},
		{[]string{"--subscription", "decisions/subscriptions/"}, "allowed is TOPIC/Subscriptions/NAME"},
		{[]string{"--subscription", "decisions/subscriptions/a:fifo"}, "TOPIC/Subscriptions/NAME[:sessions]"},
		{[]string{"--any-token", "--cosmos", "0.0.0.0:0", "--servicebus", "127.0.0.1:0"}, "any token is accepted on loopback only"},
		{[]string{"--file", "nowhere.yaml"}, "nowhere.yaml"},
		{[]string{"--file", "main.go"}, "main.go"},
		{[]string{"--load", "90"}, "--load: needs a container to write to"},
		{[]string{"now"}, `unexpected argument "now"`},
	} {
		if status, stdout, stderr := run(t, append([]string{"emulate"}, c.args...)...); status != 2 || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, stdout %q, stderr %q", c.args, status, stdout, stderr)
		}
	}
}

// TestEmulateEnvPrintsWhatAnotherTerminalTakesOver serves stand-ins and asks for their settings.
func TestEmulateEnvPrintsWhatAnotherTerminalTakesOver(t *testing.T) {
	t.Parallel()
	stand, err := emulator.Start(emulator.Options{Cosmos: cosmosfake.Options{Addr: "127.0.0.1:0"}, ServiceBus: servicebusfake.Options{Addr: "127.0.0.1:0"}})
	testworld.Must(t, err)
	defer stand.Close()
	cosmos, bus := strings.Trim(strings.TrimPrefix(stand.Cosmos.Endpoint(), "http:"), "/"), stand.ServiceBus.Addr().String()
	status, stdout, stderr := run(t, "emulate", "env", "--cosmos", cosmos, "--servicebus", bus)
	want := "export COSMOS='" + stand.Cosmos.ConnectionString() + "'\nexport SERVICEBUS='" + stand.ServiceBus.ConnectionString() + "'\n"
	if status != 0 || stdout != want {
		t.Errorf("status %d, stderr %q, stdout\n%swant\n%s", status, stderr, stdout, want)
	}
}

// TestNoFlagShowsItsTypeTwice reads the help of each flag; "--seeds number   number of replays" is
// wrong.
func TestNoFlagShowsItsTypeTwice(t *testing.T) {
	t.Parallel()
	for _, command := range commands() {
		c := command.Make(program.Env{})
		c.Flags().VisitAll(func(f *pflag.Flag) {
			kind, usage := pflag.UnquoteUsage(f)
			if slices.Contains(strings.FieldsFunc(usage, func(r rune) bool { return !unicode.IsLetter(r) }), kind) {
				t.Errorf("%s --%s %s   %s", c.Name(), f.Name, kind, usage)
			}
			if f.Shorthand == "o" && f.Name != "output" {
				t.Errorf("%s: -o is --%s", c.Name(), f.Name)
			}
		})
	}
}
