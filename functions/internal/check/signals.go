package check

import (
	"context"
	"errors"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// signalChecker looks at signal queues, which share a namespace.
type signalChecker struct {
	*servicebus.Signals
	access     queueAccess                     // without the queue
	whoSignsIn func(context.Context) principal // nil where a key proves the connection
}

// checkSignals looks at the signal queue of each processor and of each group. The caller calls end once all
// tasks have ended.
func (c *checker) checkSignals() (tasks []func(context.Context) []Line, end func()) {
	queues := make(map[string][]string) // the processors that depend on each
	members := make(map[string][]string)
	var order []string
	add := func(queue string, processors ...string) {
		if queue != "" {
			queues[queue] = processors
			order = append(order, queue)
		}
	}
	for _, p := range c.config.Processors {
		add(p.SignalQueue, p.Name)
		members[p.Group] = append(members[p.Group], p.Name)
	}
	for _, g := range c.config.Groups {
		add(g.SignalQueue, members[g.Name]...)
	}
	if len(order) == 0 {
		return nil, func() {}
	}
	bus := c.config.Settings.Events.ServiceBus
	s := signalChecker{access: queueAccess{Access: connect.BusAccess(bus), endpoint: busEndpoint(bus)}}
	signals, err := c.connections.Signals(c.config.Settings.Events)
	if err != nil {
		return nil, func() {} // the same is wrong with the connection of the events, whose line says so
	}
	s.Signals = signals
	if !s.access.ByKey() {
		// Made here, since connections are not for tasks that run side by side.
		if credential, err := c.connections.Credential(bus.Identity); err == nil {
			s.whoSignsIn = func(ctx context.Context) principal {
				who, _ := c.tokenOf(ctx, bus.Identity, credential, serviceBusScope)
				return who
			}
		}
	}
	for _, queue := range order {
		tasks = append(tasks, func(ctx context.Context) []Line { return s.check(ctx, queue, queues[queue]) })
	}
	return tasks, func() { _ = signals.Close(context.Background()) }
}

func (c signalChecker) check(ctx context.Context, queue string, processors []string) []Line {
	access := c.access
	access.queue = queue
	s := section{target: access.endpoint.name() + "/" + queue, processors: processors}
	s.try(ctx, "keep signals", func(ctx context.Context) finding {
		if c.whoSignsIn != nil {
			access.who = c.whoSignsIn(ctx)
		}
		return access.signalFinding(c.Probe(ctx, queue))
	})
	s.try(ctx, "queue settings", func(ctx context.Context) finding {
		if !access.endpoint.tls {
			return notTried("a development emulator without TLS is not asked for the settings of its queues")
		}
		return access.settingsFinding(c.Settings(ctx, queue))
	})
	return s.lines
}

// signalFinding says whether a queue can be kept at a count.
func (a queueAccess) signalFinding(err error) finding {
	if err == nil {
		return good("the queue can be sent to and received from, and holds nothing but signals; nothing was changed")
	}
	var refusal *servicebus.Refusal
	if !errors.As(err, &refusal) {
		return bad("", "%v", err)
	}
	return bad(a.signalFix(refusal.Kind), "%v", err)
}

// settingsFinding says whether a queue keeps its signals while nobody tends it.
func (a queueAccess) settingsFinding(q servicebus.QueueSettings, err error) finding {
	const look = "see that its default time to live is the longest, that it is never deleted, and that it forwards nothing"
	var refusal *servicebus.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Kind == servicebus.NotPermitted:
		return notTried("the settings of the queue can be read with the Manage right alone, or with the role Azure Service Bus Data Owner: %s", look)
	case err != nil:
		return notTried("%v: %s", err, look)
	}
	update := []string{"--resource-group", unknownGroup, "--namespace-name", a.endpoint.resource(), "--name", a.queue}
	var wrong []string
	if q.TimeToLive != "" {
		wrong = append(wrong, "its messages expire after "+q.TimeToLive+", all of them at about once")
		update = append(update, "--default-message-time-to-live", longest)
	}
	if q.DeletedAfter != "" {
		wrong = append(wrong, "it is deleted after "+q.DeletedAfter+" without use")
		update = append(update, "--auto-delete-on-idle", longest)
	}
	if q.ForwardsTo != "" {
		wrong = append(wrong, "it forwards its messages to "+q.ForwardsTo+", so that it holds none")
		update = append(update, "--forward-to", "")
	}
	if len(wrong) > 0 {
		return bad(commandLine("az servicebus queue update", update...), "%s", strings.Join(wrong, ", and "))
	}
	return good("its messages have no time to live, and stay where they are")
}

// longest is the longest duration of a queue's settings, by which it has none.
const longest = "P10675199DT2H48M5.4775807S"

// signalFix mends a refusal of a signal queue.
func (a queueAccess) signalFix(refused servicebus.Kind) string {
	name := a.endpoint.resource()
	create := commandLine("az servicebus queue create", "--resource-group", unknownGroup, "--namespace-name", name, "--name", a.queue, "--default-message-time-to-live", longest)
	switch {
	case refused == servicebus.QueueNotFound:
		return create
	case refused == servicebus.WrongSessions:
		return commandLine("az servicebus queue delete", "--resource-group", unknownGroup, "--namespace-name", name, "--name", a.queue) + " && " + create
	case refused == servicebus.NotPermitted && !a.ByKey():
		scope := a.endpoint.resourceID() + "/queues/" + a.queue
		return roleAssignment(a.who, "Azure Service Bus Data Sender", scope) + " && " + roleAssignment(a.who, "Azure Service Bus Data Receiver", scope)
	case refused == servicebus.NotPermitted:
		return strings.Replace(a.fix(refused), "the Send right", "the Send and the Listen right", 1)
	}
	return a.fix(refused)
}
