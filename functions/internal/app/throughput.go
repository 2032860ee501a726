package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// provisioner hands the decisions of a tick to the keeper of throughput, and says what became of it.
type provisioner struct {
	log    *slog.Logger
	keeper *throughput.Keeper

	containers []followed

	mu   sync.Mutex // held while it settles
	idle bool       // nothing is configured, and nothing was left to give back
	said map[string]string
}

// followed is a container with the processors that name it.
type followed struct {
	throughput.Container
	by []follower
}

type follower struct {
	processor    string
	ruPerReplica int
	monitors     bool // the container is the one whose feed it reads
}

// newProvisioner wires the throughput of a configuration. It is there without any, too: what an earlier
// configuration provisioned is given back.
func newProvisioner(c config.Config, connections *connect.Connections, store state.Store, log *slog.Logger) (*provisioner, error) {
	p := &provisioner{log: log, said: map[string]string{}}
	p.keeper = &throughput.Keeper{Store: store, Open: func(setting string) (throughput.Way, error) {
		connection, err := c.Connection(setting)
		if err != nil {
			return nil, err
		}
		return connections.WayToThroughput(connection)
	}}
	index := map[string]int{}
	for _, processor := range c.Processors {
		for _, named := range processor.Throughput.Containers {
			key := named.Connection.Endpoint + named.DatabaseID + "/" + named.ContainerID
			at, known := index[key]
			if !known {
				c, err := connections.Throughput(processor.Throughput, named)
				if err != nil {
					return nil, fmt.Errorf("throughput of processor %s: %w", processor.Name, err)
				}
				at = len(p.containers)
				index[key] = at
				p.containers = append(p.containers, followed{Container: c})
			}
			p.containers[at].by = append(p.containers[at].by, follower{
				processor: processor.Name, ruPerReplica: named.RUPerReplica,
				monitors: named.Connection.Endpoint == processor.Connection.Endpoint && named.DatabaseID == processor.DatabaseID && named.ContainerID == processor.ContainerID,
			})
		}
	}
	return p, nil
}

// provision is a poller.Provision. Where another tick still settles, it leaves this one out.
func (p *provisioner) provision(ctx context.Context, now time.Time, wants map[string]poller.Want) map[string]scaling.Limit {
	if !p.mu.TryLock() {
		return nil
	}
	defer p.mu.Unlock()
	var containers []throughput.Container
	followers := map[string][]follower{}
	for _, f := range p.containers {
		c := f.Container
		for _, by := range f.by {
			if w := wants[by.processor]; !w.Paused {
				c.Demands = append(c.Demands, demand(by, w))
				followers[c.Account+c.Container.String()] = append(followers[c.Account+c.Container.String()], by)
			}
		}
		if len(c.Demands) > 0 {
			containers = append(containers, c)
		}
	}
	if p.idle {
		return nil
	}
	outcomes, err := p.keeper.Settle(ctx, now, containers)
	p.idle = err == nil && len(outcomes) == 0 && len(p.containers) == 0
	if err != nil {
		p.say("", slog.LevelError, "throughput cannot be settled", "error", err.Error())
	}
	limits := map[string]scaling.Limit{}
	for _, o := range outcomes {
		p.tell(o)
		if d := o.Decision; d != nil && d.AtLimit && d.RUPerSecond == d.Provisioned && o.Note == "" && o.Apply {
			for _, by := range followers[o.Account+o.Container.String()] {
				limits[by.processor] = scaling.Limit{Container: o.Container.String(), RUPerSecond: d.RUPerSecond}
			}
		}
	}
	return limits
}

func demand(by follower, w poller.Want) scaling.Demand {
	d := scaling.Demand{Processor: by.processor, PerReplica: float64(by.ruPerReplica)}
	if d.PerReplica == 0 && by.monitors {
		d.PerReplica = w.PerReplica
	}
	if w.Replicas == nil {
		d.Undecided = true
		return d
	}
	d.Replicas = *w.Replicas
	return d
}

// tell logs what became of a container, each thing once.
func (p *provisioner) tell(o throughput.Outcome) {
	name := o.Container.String()
	about := []any{"container", name}
	switch d := o.Decision; {
	case o.Err != nil:
		p.say(name, slog.LevelWarn, "throughput cannot be read or changed", append(about, "error", o.Err.Error())...)
	case o.Note != "":
		p.say(name, slog.LevelWarn, "throughput is left alone", append(about, "why", o.Note)...)
	case o.Restored:
		p.say(name, slog.LevelInfo, "throughput that was found is back", about...)
	case o.Applied:
		p.say(name, slog.LevelInfo, "throughput is provisioned", append(about, "ruPerSecond", d.RUPerSecond, "before", d.Provisioned, "why", d.Why())...)
	case d != nil && !o.Apply && d.RUPerSecond != d.Provisioned:
		p.say(name, slog.LevelInfo, "throughput is recommended", append(about, "ruPerSecond", d.RUPerSecond, "provisioned", d.Provisioned, "why", d.Why())...)
	default:
		delete(p.said, name)
	}
}

func (p *provisioner) say(name string, level slog.Level, text string, attributes ...any) {
	if this := fmt.Sprint(text, attributes); p.said[name] != this {
		p.said[name] = this
		p.log.Log(context.Background(), level, text, attributes...)
	}
}
