package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
)

// Check tries every name and permission that the configuration needs, and prints of each whether it
// holds and what mends it. It sends no event. Those of the kinds that can tell what else scales a
// target say so.
func Check(kinds actions.Kinds) Command {
	return Command{"check", "try every name and permission, and say what mends what does not hold", func(ctx context.Context, env Env, args []string) error {
		return tryAll(ctx, env, args, kinds)
	}}
}

func tryAll(ctx context.Context, env Env, args []string, kinds actions.Kinds) error {
	f := NewFlags(env, "check", "[--config FILE] [--output table|json] [--timeout 60s]")
	file := f.String("config", "", "the processors file")
	output := f.String("output", "table", "table or json")
	timeout := f.Duration("timeout", time.Minute, "what was not tried by then is skipped, and does not count as holding")
	if err := f.Parse(args); err != nil {
		return err
	}
	var mistakes flagMistakes
	mistakes.choice("output", *output, "table", "json")
	if *timeout <= 0 {
		mistakes.add("--timeout is %s; allowed are durations above 0, such as 60s", *timeout)
	}
	if err := mistakes.refuse(env.Stderr, "check"); err != nil {
		return err
	}
	return checkAll(ctx, env, *file, *output, *timeout, kinds)
}

// checkAll checks what a processors file asks for; "" is that of the settings.
func checkAll(ctx context.Context, env Env, file, output string, timeout time.Duration, kinds actions.Kinds) error {
	c, err := config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: os.ReadFile})
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		if output == "json" {
			if err := console.WriteJSON(env.Stdout, check.Misconfigured(err)); err != nil {
				return Usage(err)
			}
		}
		return Usage(nil)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := check.Run(ctx, c, env.Getenv, kinds)
	if err != nil {
		return Usage(err)
	}
	if output == "json" {
		err = console.WriteJSON(env.Stdout, found)
	} else {
		err = console.WriteChecks(env.Stdout, found, env.Style())
	}
	if err != nil {
		return err
	}
	if !found.OK {
		return Incomplete(nil)
	}
	return nil
}
