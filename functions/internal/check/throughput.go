package check

import (
	"context"
	"fmt"

	"github.com/feedscale/feedscale/pkg/cosmos"
)

// throughput tries, of each container whose throughput follows processors, whether that can be read. Whether it may be
// replaced shows with the first change.
func (c *checker) throughput() []*section {
	var all section
	for _, p := range c.config.Processors {
		for _, named := range p.Throughput.Containers {
			container := cosmos.Container{Database: named.DatabaseID, ID: named.ContainerID}
			host := httpEndpoint(named.Connection.Endpoint, named.Connection.Setting).name()
			s, added := all.child(host+"/"+container.String(), host+"/"+container.String(), p.Name)
			if !added {
				continue
			}
			s.unhurried = c.config.Settings.RUBudget > 0
			way, unusable := c.connections.WayToThroughput(named.Connection) // accounts are made by one goroutine
			s.try("read throughput", func(ctx context.Context) finding {
				if unusable != nil {
					return bad("", "%v", unusable)
				}
				there, err := way.ReadThroughput(ctx, container)
				return holds(err, "", fmt.Sprintf("the throughput can be read: %d RU/s", there.RUPerSecond))
			})
		}
	}
	return all.parts
}
