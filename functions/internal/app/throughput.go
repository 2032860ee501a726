package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// provisioner tells what the containers of processors need, hands the decisions of a tick to the keeper of
// throughput, and says what became of it.
type provisioner struct {
	log        *slog.Logger
	keeper     *throughput.Keeper
	containers []*followed

	look sync.Once // reads the containers for the first time

	mu    sync.Mutex
	wants map[string]poller.Want                 // of each processor, as far as it is known
	told  map[string][]state.ContainerThroughput // of each processor, by its last follow

	settling sync.Mutex // held while the keeper settles
	idle     bool       // nothing is configured, and nothing was left to give back
	said     map[string]string
}

// followed is a container with the processors that name it.
type followed struct {
	throughput.Container
	host string
	by   []follower
}

type follower struct {
	processor    string
	ruPerReplica int
	monitors     bool // the container is the one whose feed it reads
}

// newProvisioner wires the throughput of a configuration. It is there without any, too: what an earlier
// configuration provisioned is given back.
func newProvisioner(c config.Config, connections *connect.Connections, store state.Store, log *slog.Logger) (*provisioner, error) {
	p := &provisioner{log: log, wants: map[string]poller.Want{}, told: map[string][]state.ContainerThroughput{}, said: map[string]string{}}
	p.keeper = &throughput.Keeper{Store: store, Open: func(setting string) (throughput.Way, error) {
		connection, err := c.Connection(setting)
		if err != nil {
			return nil, err
		}
		return connections.WayToThroughput(connection)
	}}
	index := map[string]*followed{}
	for _, processor := range c.Processors {
		for _, named := range processor.Throughput.Containers {
			key := named.Connection.Endpoint + named.DatabaseID + "/" + named.ContainerID
			f := index[key]
			if f == nil {
				c, err := connections.Throughput(processor.Throughput, named)
				if err != nil {
					return nil, fmt.Errorf("throughput of processor %s: %w", processor.Name, err)
				}
				f = &followed{Container: c, host: named.Connection.Host}
				index[key] = f
				p.containers = append(p.containers, f)
			}
			f.by = append(f.by, follower{
				processor: processor.Name, ruPerReplica: named.RUPerReplica,
				monitors: named.Connection.Endpoint == processor.Connection.Endpoint && named.DatabaseID == processor.DatabaseID && named.ContainerID == processor.ContainerID,
			})
		}
	}
	return p, nil
}

// lookTime bounds the reading of containers that were never read, for which the first processors that are
// decided wait.
const lookTime = 5 * time.Second

// follow is a poller.Follow.
func (p *provisioner) follow(ctx context.Context, now time.Time, processor string, w poller.Want, last []state.ContainerThroughput) poller.Followed {
	if !slices.ContainsFunc(p.containers, func(f *followed) bool { return f.names(processor) }) {
		return poller.Followed{}
	}
	p.look.Do(func() { p.readAll(ctx, now) })
	p.mu.Lock()
	defer p.mu.Unlock()
	if settled, known := p.wants[processor]; known && w.Member {
		w.Replicas = settled.Replicas
	}
	p.wants[processor] = w
	var told poller.Followed
	for _, f := range p.containers {
		if !f.names(processor) {
			continue
		}
		c := f.asked(p.wants)
		shown := p.show(f, c, p.keeper.Preview(now, c))
		if i := slices.IndexFunc(last, shown.Same); i >= 0 {
			if f.Last == nil {
				f.Last = &last[i]
				shown = p.show(f, c, p.keeper.Preview(now, f.asked(p.wants)))
			}
			shown.Bill(now, last[i].Hours)
		} else {
			shown.Bill(now, nil)
		}
		spent := p.keeper.Spent(c)
		told.Requests += spent.Requests
		told.Charge += spent.Charge
		told.Containers = append(told.Containers, shown)
	}
	p.told[processor] = told.Containers
	return told
}

func (p *provisioner) readAll(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all := make([]throughput.Container, len(p.containers))
	for i, f := range p.containers {
		all[i] = f.Container
	}
	if err := p.keeper.Look(ctx, now, all); err != nil {
		p.log.Error("what was found of throughput cannot be read from the state", "error", err.Error())
	}
}

func (f *followed) names(processor string) bool {
	return slices.ContainsFunc(f.by, func(by follower) bool { return by.processor == processor })
}

// asked is the container with what the processors ask for that are not paused.
func (f *followed) asked(wants map[string]poller.Want) throughput.Container {
	c := f.Container
	for _, by := range f.by {
		if w := wants[by.processor]; !w.Paused {
			c.Demands = append(c.Demands, demand(by, w))
		}
	}
	return c
}

// show is what is told of a container.
func (p *provisioner) show(f *followed, c throughput.Container, o throughput.Outcome) state.ContainerThroughput {
	shown := state.ContainerThroughput{
		Account: f.host, Database: c.Container.Database, Container: c.Container.ID, Apply: c.Apply, Min: c.Policy.Min, Max: c.Policy.Max,
		Provisioned: o.Provisioned, Found: o.Found, Decision: o.Decision, Memory: o.Memory, Note: o.Note,
	}
	if o.Err != nil {
		shown.Error = o.Err.Error()
	}
	if len(c.Demands) == 0 {
		shown.Decision, shown.Memory, shown.Note = nil, scaling.ThroughputMemory{}, "paused: what was found is given back"
	}
	return shown
}

// provision is a poller.Provision. Where another tick still settles, it leaves this one out.
func (p *provisioner) provision(ctx context.Context, now time.Time, wants map[string]poller.Want) poller.Provisioned {
	if !p.settling.TryLock() {
		return poller.Provisioned{}
	}
	defer p.settling.Unlock()
	if p.idle {
		return poller.Provisioned{}
	}
	asked, containers := p.ask(wants)
	outcomes, err := p.keeper.Settle(ctx, now, containers)
	p.idle = err == nil && len(outcomes) == 0 && len(p.containers) == 0
	if err != nil {
		p.say("", slog.LevelError, "throughput cannot be settled", "error", err.Error())
	}
	for _, o := range outcomes {
		p.tell(o)
	}
	return p.provisioned(asked, outcomes)
}

// ask takes what processors want, and returns the containers for which any that is not paused asks.
func (p *provisioner) ask(wants map[string]poller.Want) (asked []*followed, containers []throughput.Container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wants = maps.Clone(wants)
	for _, f := range p.containers {
		if c := f.asked(wants); len(c.Demands) > 0 {
			asked, containers = append(asked, f), append(containers, c)
		}
	}
	return asked, containers
}

// provisioned tells each processor what became of its containers: of those that were asked for the
// outcomes come first, in their order.
func (p *provisioner) provisioned(asked []*followed, outcomes []throughput.Outcome) poller.Provisioned {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := poller.Provisioned{Limits: map[string]scaling.Limit{}}
	for i, f := range asked {
		if i >= len(outcomes) {
			break // the state could not be loaded
		}
		shown := p.show(f, f.asked(p.wants), outcomes[i])
		for _, by := range f.by {
			told := slices.Clone(p.told[by.processor])
			if at := slices.IndexFunc(told, shown.Same); at >= 0 {
				shown.Hours = told[at].Hours
				told[at] = shown
				p.told[by.processor] = told
			}
			if shown.AtLimit() && !p.wants[by.processor].Paused {
				done.Limits[by.processor] = scaling.Limit{Container: shown.Name(), RUPerSecond: shown.Provisioned}
			}
		}
	}
	done.Containers = maps.Clone(p.told)
	return done
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
