// Package check tries every name and permission that a configuration needs, measures each processor
// once, and names a fix for each failure, as values. It sends no event and decides nothing; of the
// state it writes a row that it deletes again.
//
// Start with [Run]. What is tried of a target is a section (report.go). network.go looks at names, ports and
// certificates, identity.go at who signs in; cosmos.go, leases.go, throughput.go, state.go, events.go and signals.go
// ask the services; target.go asks who else scales. What fixes a refusal, the refusal says itself.
//
// The package is internal to the program: its API may change in any release.
package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
)

// Run tries a configuration until ctx ends: what was not tried by then is skipped. An error is one of
// the configuration's connections. kinds are those that look at what is scaled.
func Run(ctx context.Context, c config.Config, kinds actions.Kinds) (Report, error) {
	checker := &checker{config: c, kinds: kinds, connections: connect.New(c.Settings)}
	for _, p := range c.Processors {
		checker.processors = append(checker.processors, p.Name)
		if err := checker.plan(p); err != nil {
			return Report{}, fmt.Errorf("processor %s: %w", p.Name, err)
		}
	}
	return checker.run(ctx), nil
}

// Misconfigured reports a configuration that cannot be tried: a line for each mistake in it.
func Misconfigured(mistakes error) (r Report) {
	settings := section{target: "configuration"}
	for mistake := range strings.Lines(mistakes.Error()) {
		r.Checks = append(r.Checks, settings.line("settings", bad("", "%s", mistake)))
	}
	return r
}

// checker tries a configuration. What several processors share is tried once.
type checker struct {
	config      config.Config
	kinds       actions.Kinds
	connections *connect.Connections
	accounts    section  // whose parts are the endpoints
	processors  []string // the names of all
}

// run tries everything and returns the lines in the order of the configuration.
func (c *checker) run(ctx context.Context) Report {
	settings := section{target: c.config.Source, processors: c.processors}
	lines := []Line{settings.line("settings", good("no mistakes, %s", report.Count(len(c.processors), "processor")))}
	limit := c.config.Settings.Concurrency
	others := slices.Concat(c.state(), c.events(), c.shards(), c.signals(), c.throughput(), c.targets())
	var tried []Line
	var running sync.WaitGroup
	running.Go(func() {
		tried = runAll(ctx, limit, "", c.accounts.parts)
		tried = append(tried, c.measure(ctx, tried)...)
	})
	more := runAll(ctx, limit, "", others)
	running.Wait()
	report := Report{Checks: slices.Concat(lines, tried, more), OK: ctx.Err() == nil}
	for _, l := range report.Checks {
		report.OK = report.OK && l.Status != Fail
	}
	return report
}

// subject is a processor, or a group with its members.
type subject struct {
	name, signalQueue string
	target            map[string]string
	processors        []string
	member            bool // a processor whose group has the target
}

func (c *checker) subjects() (all []subject) {
	members := make(map[string][]string)
	for _, p := range c.config.Processors {
		all = append(all, subject{p.Name, p.SignalQueue, p.Target, []string{p.Name}, p.Group != ""})
		members[p.Group] = append(members[p.Group], p.Name)
	}
	for _, g := range c.config.Groups {
		all = append(all, subject{g.Name, g.SignalQueue, g.Target, members[g.Name], false})
	}
	return all
}
