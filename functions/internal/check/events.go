package check

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/report"
)

// amqpsPort is that of AMQP over TLS.
const amqpsPort = "5671"

// serviceBusScope is what a token for Service Bus is for, in every cloud.
const serviceBusScope = "https://servicebus.azure.net/.default"

func (c *checker) checkEvents(ctx context.Context) []Line {
	settings := c.config.Settings.Events
	if settings.Queue == "" {
		s := section{target: "stdout:", processors: c.processors}
		s.add("send", notTried("events go to standard output, which needs no permission"))
		return s.lines
	}
	s, publisher, entity := c.trySend(ctx, settings)
	if publisher == nil {
		return s.lines
	}
	defer publisher.Close(ctx)
	if entity == servicebus.Topic || entity == servicebus.UnknownEntity {
		s.try(ctx, "subscriptions", func(ctx context.Context) finding {
			e := busEndpoint(settings.ServiceBus)
			if !e.tls {
				return notTried("a development emulator without TLS is not asked for subscriptions: %s", noSubscriber)
			}
			n, isTopic, err := publisher.Subscriptions(ctx)
			return subscriptionFinding(e, settings.Queue, n, isTopic, err)
		})
	}
	return s.lines
}

// trySend tries to send to a queue or topic. The publisher is nil where nothing can be sent.
func (c *checker) trySend(ctx context.Context, to config.Events) (s *section, publisher *servicebus.Publisher, entity servicebus.Entity) {
	bus, e := to.ServiceBus, busEndpoint(to.ServiceBus)
	s = &section{target: e.name() + "/" + to.Queue, processors: c.processors}
	s.reach(ctx, e)
	who := c.signIn(ctx, s, connect.BusAccess(bus), nil, serviceBusScope)
	s.try(ctx, "send", func(ctx context.Context) finding {
		opened, err := c.connections.Queue(to)
		if err != nil {
			return bad("correct setting "+bus.Setting, "%v", err)
		}
		if err := opened.Probe(ctx); err != nil {
			_ = opened.Close(ctx)
			return refused(err, who)
		}
		publisher, entity = opened, opened.Entity(ctx)
		return good("the %s exists and can be sent to; nothing was sent", cmp.Or(entity, "queue or topic"))
	})
	return s, publisher, entity
}

// checkShards tries the queue of shards, to which the timer function sends, and from which the host takes.
func (c *checker) checkShards(ctx context.Context) []Line {
	settings := c.config.Settings.Shards
	if settings.Queue == "" {
		return nil
	}
	s, publisher, entity := c.trySend(ctx, settings)
	if publisher == nil {
		return s.lines
	}
	defer publisher.Close(ctx)
	s.try(ctx, "receive", func(context.Context) finding {
		switch entity {
		case servicebus.Queue:
			return good("the queue can be received from")
		case servicebus.UnknownEntity:
			return bad("use a policy with the Send and the Listen right, or give the identity the role Azure Service Bus Data Receiver",
				"the queue cannot be received from, so that nobody would poll its shards")
		}
		return bad("make a queue without sessions", "it is a %s, from which the function shard cannot take", entity)
	})
	return s.lines
}

// noSubscriber is what becomes of what is sent to a topic that nobody subscribes to.
const noSubscriber = "a topic without one drops every event"

// mayNotManage reports whether a service refused what takes the Manage right.
func mayNotManage(err error) bool {
	refusal, ok := errors.AsType[*servicebus.Refusal](err)
	return ok && refusal.Kind == servicebus.NotPermitted
}

// subscriptionFinding says whether what is sent to a topic gets anywhere.
func subscriptionFinding(e serviceEndpoint, queue string, n int, isTopic bool, err error) finding {
	switch {
	case mayNotManage(err):
		return notTried("subscriptions can be seen with the Manage right alone, or with the role Azure Service Bus Data Owner: see that %s has one where it is a topic, since %s", queue, noSubscriber)
	case err != nil:
		return notTried("%v: see that %s has a subscription where it is a topic, since %s", err, queue, noSubscriber)
	case !isTopic:
		return good("%s is a queue, which needs none", queue)
	case n == 0:
		return doubtful(azurecli.InGroup("servicebus topic subscription create", "--namespace-name", azurecli.ServiceBus.Resource(e.host), "--topic-name", queue, "--name", "CONSUMER"),
			"the topic has no subscription, so that it drops every event")
	}
	return good("the topic has %s", report.Count(n, "subscription"))
}

// busEndpoint is where the SDK connects to: a development emulator has no TLS.
func busEndpoint(bus config.ServiceBusConnection) serviceEndpoint {
	e := serviceEndpoint{service: azurecli.ServiceBus, host: bus.Namespace, port: amqpsPort, tls: true, setting: bus.Setting}
	if strings.HasSuffix(bus.ConnectionString.Reveal(), ";UseDevelopmentEmulator=true") {
		e.port, e.tls = "5672", false
	}
	if host, port, err := net.SplitHostPort(bus.Namespace); err == nil {
		e.host, e.port = host, port
	}
	return e
}
