package check

import (
	"context"
	"fmt"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// followedContainer is a container whose throughput follows processors.
type followedContainer struct {
	config.ThroughputContainer
	processors []string
}

// throughput tries, of each container whose throughput follows processors, whether that can be read. Whether it may be
// replaced shows with the first change.
func (c *checker) throughput() (sections []*section) {
	var all []*followedContainer
	for _, p := range c.config.Processors {
		for _, named := range p.Throughput.Containers {
			f := find(&all, func(f *followedContainer) bool {
				return f.Connection.Endpoint == named.Connection.Endpoint && f.DatabaseID == named.DatabaseID && f.ContainerID == named.ContainerID
			}, func() *followedContainer { return &followedContainer{ThroughputContainer: named} })
			f.processors = append(f.processors, p.Name)
		}
	}
	for _, f := range all {
		container := cosmos.Container{Database: f.DatabaseID, ID: f.ContainerID}
		host := httpEndpoint(azurecli.Cosmos, f.Connection.Endpoint, f.Connection.Setting).name()
		way, unusable := c.connections.WayToThroughput(f.Connection) // accounts are made by one goroutine
		s := &section{processors: f.processors, target: host + "/" + container.String(), unhurried: c.config.Settings.RUBudget > 0}
		s.try("read throughput", func(ctx context.Context) finding {
			if unusable != nil {
				return bad("", "%v", unusable)
			}
			there, err := way.ReadThroughput(ctx, container)
			return holds(err, principal{}, provisioned(there))
		})
		sections = append(sections, s)
	}
	return sections
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
