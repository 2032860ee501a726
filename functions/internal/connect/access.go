package connect

import "github.com/feedscale/feedscale/pkg/config"

// Access is how a connection proves itself.
type Access struct {
	Setting  string           // that holds the key, the connection string or the endpoint
	Identity *config.Identity // nil if a key, or a connection string, proves it
}

// ByKey reports whether a key proves the connection, rather than an identity.
func (a Access) ByKey() bool { return a.Identity == nil }

// CosmosAccess is how a connection to an account proves itself.
func CosmosAccess(c config.CosmosConnection) Access {
	if c.UsesIdentity() {
		return Access{c.Setting, &c.Identity}
	}
	return Access{Setting: c.Setting}
}

// BusAccess is how a connection to a Service Bus namespace proves itself.
func BusAccess(c config.ServiceBusConnection) Access {
	if c.UsesIdentity() {
		return Access{c.Setting, &c.Identity}
	}
	return Access{Setting: c.Setting}
}

// TableAccess is how the state table is opened: FEEDSCALE_STATE itself names a service URL.
func TableAccess(t config.Table) Access {
	if t.ServiceURL != "" {
		return Access{"FEEDSCALE_STATE", &config.Identity{}}
	}
	return Access{Setting: t.Setting}
}
