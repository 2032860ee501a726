package app

import (
	"fmt"
	"log/slog"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/state"
)

// newKeeper wires the throughput of a configuration. Without any, it gives back what an earlier configuration
// provisioned.
func newKeeper(c config.Config, connections *connect.Connections, store state.Store, log *slog.Logger) (*throughput.Keeper, error) {
	k := &throughput.Keeper{Store: store, Log: log, Open: func(setting string) (throughput.Way, error) {
		connection, err := c.Connection(setting)
		if err != nil {
			return nil, err
		}
		return connections.WayToThroughput(connection)
	}}
	index := map[string]*throughput.Container{}
	for _, p := range c.Processors {
		for _, named := range p.Throughput.Containers {
			key := named.Connection.Endpoint + named.DatabaseID + "/" + named.ContainerID
			if index[key] == nil {
				made, err := connections.Throughput(p.Throughput, named)
				if err != nil {
					return nil, fmt.Errorf("throughput of processor %s: %w", p.Name, err)
				}
				index[key] = made
				k.Containers = append(k.Containers, made)
			}
			index[key].Processors = append(index[key].Processors, throughput.Processor{
				Name: p.Name, RUPerReplica: named.RUPerReplica,
				Monitors: named.Connection.Endpoint == p.Connection.Endpoint && named.DatabaseID == p.DatabaseID && named.ContainerID == p.ContainerID,
			})
		}
	}
	return k, nil
}
