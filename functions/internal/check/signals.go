package check

import (
	"context"
	"strings"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// signals looks at the signal queue of each processor and of each group.
func (c *checker) signals() (all []*section) {
	bus := c.config.Settings.Events.ServiceBus
	e := busEndpoint(bus)
	for _, of := range c.subjects() {
		signals, err := c.connections.Signals(c.config.Settings.Events, servicebus.SignalsOptions{TryTimeout: stepTimeout})
		if of.signalQueue == "" || err != nil || signals == nil {
			continue // the same is wrong with the connection of the events, whose line says so
		}
		s := &section{target: e.name() + "/" + of.signalQueue, processors: of.processors}
		all = append(all, s)
		s.try("keep signals", func(ctx context.Context) finding {
			defer signals.Close(context.Background())
			err := signals.Probe(ctx, of.signalQueue)
			var who principal
			if err != nil {
				who, _ = c.identify(ctx, bus.Setting, bus.UsesIdentity(), bus.Identity, nil, serviceBusScope) // the line of the events says so
			}
			return holds(err, who, "the queue can be sent to and received from, and holds nothing but signals; nothing was changed")
		})
		s.try("queue settings", func(ctx context.Context) finding {
			if !e.tls {
				return notTried("a development emulator without TLS is not asked for the settings of its queues")
			}
			settings, err := signals.Settings(ctx, of.signalQueue)
			return settingsFinding(e, of.signalQueue, settings, err)
		})
	}
	return all
}

// settingsFinding says whether a queue keeps its signals while nobody tends it.
func settingsFinding(e serviceEndpoint, queue string, q servicebus.QueueSettings, err error) finding {
	const look = "see that its default time to live is the longest, that it is never deleted, and that it forwards nothing"
	if err != nil {
		return notTried("%v: %s", err, look)
	}
	update := []string{"--namespace-name", azurecli.ServiceBus.Resource(e.host), "--name", queue}
	var wrong []string
	if q.TimeToLive != "" {
		wrong = append(wrong, "its messages expire after "+q.TimeToLive+", all of them at about once")
		update = append(update, "--default-message-time-to-live", servicebus.NoTimeToLive)
	}
	if q.DeletedAfter != "" {
		wrong = append(wrong, "it is deleted after "+q.DeletedAfter+" without use")
		update = append(update, "--auto-delete-on-idle", servicebus.NoTimeToLive)
	}
	if q.ForwardsTo != "" {
		wrong = append(wrong, "it forwards its messages to "+q.ForwardsTo+", so that it holds none")
		update = append(update, "--forward-to", "")
	}
	if len(wrong) > 0 {
		return bad(azurecli.InGroup("servicebus queue update", update...), "%s", strings.Join(wrong, ", and "))
	}
	return good("its messages have no time to live, and stay where they are")
}
