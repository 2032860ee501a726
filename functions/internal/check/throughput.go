package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// followedContainer is a container whose throughput follows processors.
type followedContainer struct {
	config.ThroughputContainer
	apply      bool
	processors []string
}

// checkThroughput tries, of each container whose throughput follows processors, whether that can be read
// and, where it is to be provisioned, replaced. Nothing is written.
func (c *checker) checkThroughput(ctx context.Context) []func() []Line {
	var all []*followedContainer
	for _, p := range c.config.Processors {
		for _, named := range p.Throughput.Containers {
			f := find(&all, func(f *followedContainer) bool {
				return f.Connection.Endpoint == named.Connection.Endpoint && f.DatabaseID == named.DatabaseID && f.ContainerID == named.ContainerID
			}, func() *followedContainer { return &followedContainer{ThroughputContainer: named} })
			f.apply = f.apply || p.Throughput.Mode == config.ThroughputApply
			f.processors = append(f.processors, p.Name)
		}
	}
	tasks := make([]func() []Line, len(all))
	for i, f := range all {
		way, err := c.connections.WayToThroughput(f.Connection) // accounts are made by one goroutine
		tasks[i] = func() []Line { return c.checkFollowed(ctx, f, way, err) }
	}
	return tasks
}

func (c *checker) checkFollowed(ctx context.Context, f *followedContainer, way connect.Throughput, unusable error) []Line {
	container := cosmos.Container{Database: f.DatabaseID, ID: f.ContainerID}
	s := section{processors: f.processors, target: f.Connection.Host + "/" + container.String(), unhurried: c.config.Settings.RUBudget > 0}
	endpoint, err := httpEndpoint(azurecli.Cosmos, f.Connection.Endpoint, f.Connection.Setting)
	if err = errors.Join(unusable, err); err != nil {
		s.add("read throughput", bad("", "%v", err))
		return s.lines
	}
	s.target = endpoint.name() + "/" + container.String()
	var there cosmos.Throughput
	s.try(ctx, "read throughput", func(ctx context.Context) finding {
		var err error
		there, err = way.ReadThroughput(ctx, container)
		return holds(err, principal{}, provisioned(there))
	})
	if !f.apply {
		return s.lines
	}
	s.try(ctx, "replace throughput", func(ctx context.Context) finding {
		err := way.ProbeReplace(ctx, container, there)
		if errors.Is(err, cosmos.ErrPermissionsHidden) {
			return notTried("%v, so whether it may replace the throughput shows with the first change: grant it that, too", err)
		}
		return holds(err, principal{}, "the throughput may be replaced; nothing was written")
	})
	return s.lines
}

// provisioned says what a container has.
func provisioned(t cosmos.Throughput) string {
	text := fmt.Sprintf("%d RU/s are provisioned", t.RUPerSecond)
	if t.Autoscale {
		text = fmt.Sprintf("autoscaled up to %d RU/s", t.RUPerSecond)
	}
	if t.Minimum > 0 {
		text += fmt.Sprintf(", %d at least", t.Minimum)
	}
	if t.Pending {
		text += "; a change is under way"
	}
	return text
}
