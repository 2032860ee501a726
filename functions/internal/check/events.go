package check

import (
	"cmp"
	"context"
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

func (c *checker) events() []*section {
	settings := c.config.Settings.Events
	if settings.Queue == "" {
		s := &section{target: "stdout:", processors: c.processors}
		s.try("send", func(context.Context) finding {
			return notTried("events go to standard output, which needs no permission")
		})
		return []*section{s}
	}
	s, to := c.trySend(settings)
	s.try("subscriptions", func(ctx context.Context) finding {
		e := busEndpoint(settings.ServiceBus)
		switch {
		case to.publisher == nil || to.entity != servicebus.Topic && to.entity != servicebus.UnknownEntity:
			return finding{}
		case !e.tls:
			return notTried("a development emulator without TLS is not asked for subscriptions: %s", noSubscriber)
		}
		n, isTopic, err := to.publisher.Subscriptions(ctx)
		return subscriptionFinding(e, settings.Queue, n, isTopic, err)
	})
	s.steps[len(s.steps)-1].anyway = true
	return []*section{s}
}

// destination is where events go, once it can be sent to.
type destination struct {
	publisher *servicebus.Publisher // nil if nothing can be sent
	entity    servicebus.Entity
}

// trySend tries to send to a queue or topic.
func (c *checker) trySend(to config.Events) (*section, *destination) {
	bus, e, d := to.ServiceBus, busEndpoint(to.ServiceBus), &destination{}
	s := &section{target: e.name() + "/" + to.Queue, processors: c.processors}
	s.reach(e)
	who := c.signIn(s, connect.NewAccess(bus.Setting, bus.UsesIdentity(), bus.Identity), nil, serviceBusScope)
	s.try("send", func(ctx context.Context) finding {
		opened, err := c.connections.Queue(to)
		if err != nil {
			return bad("correct setting "+bus.Setting, "%v", err)
		}
		s.end = func() { _ = opened.Close(context.Background()) }
		if err := opened.Probe(ctx); err != nil {
			return refused(err, *who)
		}
		d.publisher, d.entity = opened, opened.Entity(ctx)
		return good("the %s exists and can be sent to; nothing was sent", cmp.Or(d.entity, "queue or topic"))
	})
	return s, d
}

// shards tries the queue of shards, to which the timer function sends, and from which the host takes.
func (c *checker) shards() []*section {
	settings := c.config.Settings.Shards
	if settings.Queue == "" {
		return nil
	}
	s, to := c.trySend(settings)
	s.try("receive", func(context.Context) finding {
		switch {
		case to.publisher == nil:
			return finding{}
		case to.entity == servicebus.Queue:
			return good("the queue can be received from")
		case to.entity == servicebus.UnknownEntity:
			return bad("use a policy with the Send and the Listen right, or give the identity the role Azure Service Bus Data Receiver",
				"the queue cannot be received from, so that nobody would poll its shards")
		}
		return bad("make a queue without sessions", "it is a %s, from which the function shard cannot take", to.entity)
	})
	s.steps[len(s.steps)-1].anyway = true
	return []*section{s}
}

// noSubscriber says what happens to events in a topic that nobody subscribes to.
const noSubscriber = "a topic without one drops every event"

// subscriptionFinding says whether what is sent to a topic gets anywhere.
func subscriptionFinding(e serviceEndpoint, queue string, n int, isTopic bool, err error) finding {
	switch {
	case err != nil:
		return notTried("%v: check that %s has a subscription if it is a topic, since %s", err, queue, noSubscriber)
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
