package check

import (
	"cmp"
	"context"
	"net"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
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
	s, _ := c.trySend(settings)
	return []*section{s}
}

// trySend tries to send to a queue or topic. What it is, is known once that was tried.
func (c *checker) trySend(to config.Events) (*section, *servicebus.Entity) {
	bus, e, entity := to.ServiceBus, busEndpoint(to.ServiceBus), new(servicebus.Entity)
	s := &section{target: e.name() + "/" + to.Queue, processors: c.processors}
	s.reach(e)
	who := c.signIn(s, bus.Setting, bus.UsesIdentity(), bus.Identity, nil, serviceBusScope)
	s.try("send", func(ctx context.Context) finding {
		opened, err := c.connections.Queue(to)
		if err != nil {
			return bad("correct setting "+bus.Setting, "%v", err)
		}
		defer opened.Close(context.Background())
		if err := opened.Probe(ctx); err != nil {
			return refused(err, *who)
		}
		*entity = opened.Entity(ctx)
		return good("the %s exists and can be sent to; nothing was sent", cmp.Or(*entity, "queue or topic"))
	})
	return s, entity
}

// shards tries the queue of shards, to which the timer function sends, and from which the host takes.
func (c *checker) shards() []*section {
	settings := c.config.Settings.Shards
	if settings.Queue == "" {
		return nil
	}
	s, entity := c.trySend(settings)
	s.try("receive", func(context.Context) finding {
		switch *entity {
		case servicebus.Queue:
			return good("the queue can be received from")
		case servicebus.UnknownEntity:
			return bad("use a policy with the Send and the Listen right, or give the identity the role Azure Service Bus Data Receiver",
				"the queue cannot be received from, so that nobody would poll its shards")
		}
		return bad("make a queue without sessions", "it is a %s, from which the function shard cannot take", *entity)
	})
	return []*section{s}
}

// busEndpoint is where the SDK connects to: a development emulator has no TLS.
func busEndpoint(bus config.ServiceBusConnection) serviceEndpoint {
	e := serviceEndpoint{host: bus.Namespace, port: amqpsPort, tls: true, setting: bus.Setting}
	if strings.HasSuffix(bus.ConnectionString.Reveal(), ";UseDevelopmentEmulator=true") {
		e.port, e.tls = "5672", false
	}
	if host, port, err := net.SplitHostPort(bus.Namespace); err == nil {
		e.host, e.port = host, port
	}
	return e
}
