package check

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
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
	bus := settings.ServiceBus
	access := queueAccess{Access: connect.BusAccess(bus), queue: settings.Queue, endpoint: busEndpoint(bus)}
	s := section{target: access.endpoint.name() + "/" + settings.Queue, processors: c.processors}
	s.reach(ctx, access.endpoint)
	s.tryAnyway(ctx, "identity", func(ctx context.Context) (f finding) {
		if access.ByKey() {
			return notTried("setting %s holds a connection string: no token is needed", access.Setting)
		}
		access.who, f = c.signIn(ctx, *access.Identity, serviceBusScope)
		return f
	})
	s.try(ctx, "send", func(ctx context.Context) finding {
		publisher, err := c.connections.Queue(settings)
		if err != nil {
			return bad("correct setting "+bus.Setting, "%v", err)
		}
		defer publisher.Close(ctx)
		if err := publisher.Probe(ctx); err != nil {
			return access.refused(err)
		}
		entity := publisher.Entity(ctx)
		if entity == servicebus.UnknownEntity {
			entity = "queue or topic"
		}
		return good("the %s exists and can be sent to; nothing was sent", entity)
	})
	return s.lines
}

// busEndpoint is where the SDK connects to: a development emulator has no TLS.
func busEndpoint(bus config.ServiceBusConnection) serviceEndpoint {
	e := serviceEndpoint{kind: busService, host: bus.Namespace, port: amqpsPort, tls: true, setting: bus.Setting}
	if strings.HasSuffix(bus.ConnectionString.Reveal(), ";UseDevelopmentEmulator=true") {
		e.port, e.tls = "5672", false
	}
	if host, port, err := net.SplitHostPort(bus.Namespace); err == nil {
		e.host, e.port = host, port
	}
	return e
}

// queueAccess is who sends where, for the advice on what is refused.
type queueAccess struct {
	connect.Access
	queue    string
	endpoint serviceEndpoint
	who      principal // where an identity signs in
}

func (a queueAccess) refused(err error) finding {
	var refusal *servicebus.Refusal
	if !errors.As(err, &refusal) {
		return bad("", "%v", err)
	}
	switch fix := a.fix(refusal.Kind); {
	case refusal.Kind == servicebus.NotPermitted && !a.ByKey():
		return bad(fix, "the identity may not send to queue %s", a.queue)
	case refusal.Kind == servicebus.NotPermitted:
		return bad(fix, "the key in setting %s may not send to queue %s", a.Setting, a.queue)
	default:
		return bad(fix, "%v", err)
	}
}
