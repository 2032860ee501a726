package main

import (
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// QueueFix is the advice on a queue in Azure, whose port a test cannot have.
func QueueFix(namespace, queue string, byKey bool, object string, refused servicebus.Kind) string {
	c := config.ServiceBusConnection{Setting: "SERVICEBUS", Namespace: namespace}
	if byKey {
		c.ConnectionString = config.NewSecret("Endpoint=sb://" + namespace + "/")
	}
	return queueAccess{connection: c, queue: queue, endpoint: busEndpoint(c), who: principal{object: object}}.fix(refused)
}
