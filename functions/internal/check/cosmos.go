package check

import (
	"context"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// accountEndpoint is what is tried of one Cosmos DB account.
type accountEndpoint struct {
	serviceEndpoint
	connections []*accountConnection
	processors  []string
}

// accountConnection is one way to sign in to an account.
type accountConnection struct {
	connection config.CosmosConnection // the first that signs in so
	account    *cosmos.Account
	databases  []*checkedDatabase
	processors []string
}

type checkedDatabase struct {
	id         string
	containers []*checkedContainer
	processors []string
}

// checkedContainer is a container by who monitors it, and who keeps leases in it.
type checkedContainer struct {
	container         cosmos.Container
	monitored, leases []string // processors
}

// plan adds what a processor needs.
func (c *checker) plan(p config.Processor) error {
	monitored, err := c.container(p.Name, p.Connection, cosmos.Container{Database: p.DatabaseID, ID: p.ContainerID})
	if err != nil {
		return err
	}
	monitored.monitored = append(monitored.monitored, p.Name)
	leases, err := c.container(p.Name, p.LeaseConnection, cosmos.Container{Database: p.LeaseDatabaseID, ID: p.LeaseContainerID})
	if err != nil {
		return err
	}
	leases.leases = append(leases.leases, p.Name)
	return nil
}

// container finds a container in the plan, or adds it with all that it is in.
func (c *checker) container(processor string, by config.CosmosConnection, id cosmos.Container) (*checkedContainer, error) {
	account, err := c.connections.Account(by)
	if err != nil {
		return nil, err
	}
	e := find(&c.endpoints, func(e *accountEndpoint) bool { return e.url == by.Endpoint }, func() *accountEndpoint {
		return &accountEndpoint{serviceEndpoint: httpEndpoint(azurecli.Cosmos, by.Endpoint, by.Setting)}
	})
	a := find(&e.connections, func(a *accountConnection) bool { return a.account == account }, func() *accountConnection {
		return &accountConnection{connection: by, account: account}
	})
	d := find(&a.databases, func(d *checkedDatabase) bool { return d.id == id.Database }, func() *checkedDatabase {
		return &checkedDatabase{id: id.Database}
	})
	for _, list := range []*[]string{&e.processors, &a.processors, &d.processors} {
		if n := len(*list); n == 0 || (*list)[n-1] != processor {
			*list = append(*list, processor)
		}
	}
	return find(&d.containers, func(k *checkedContainer) bool { return k.container == id }, func() *checkedContainer {
		return &checkedContainer{container: id}
	}), nil
}

// find returns the element of a list that is meant, or adds it.
func find[T any](list *[]*T, meant func(*T) bool, add func() *T) *T {
	if i := slices.IndexFunc(*list, meant); i >= 0 {
		return (*list)[i]
	}
	added := add()
	*list = append(*list, added)
	return added
}

// accounts tries every account, with what is in it.
func (c *checker) accounts() (all []*section) {
	for _, e := range c.endpoints {
		root := &section{target: e.name(), processors: e.processors}
		root.reach(e.serviceEndpoint)
		for _, a := range e.connections {
			suffix := ""
			if len(e.connections) > 1 {
				suffix = " (" + a.connection.Setting + ")"
			}
			c.tryConnection(root.part(e.name()+suffix, a.processors), e.name(), a, suffix)
		}
		all = append(all, root)
	}
	return all
}

func (c *checker) tryConnection(s *section, host string, a *accountConnection, suffix string) {
	who := c.signIn(s, connect.CosmosAccess(a.connection), a.account.Credential(), a.account.Scope())
	holds := func(s *section, check, what string, probe func(context.Context) error) {
		s.try(check, func(ctx context.Context) finding { return holds(probe(ctx), *who, what) })
	}
	holds(s, "read metadata", "the account's metadata can be read", a.account.ProbeAccount)
	s.unhurried = c.config.Settings.RUBudget > 0
	for _, d := range a.databases {
		in := s.part(host+"/"+d.id+suffix, d.processors)
		holds(in, "read metadata", "the database exists", func(ctx context.Context) error { return a.account.ProbeDatabase(ctx, d.id) })
		for _, k := range d.containers {
			target := host + "/" + d.id + "/" + k.container.ID + suffix
			if len(k.monitored) > 0 {
				monitored := in.part(target, k.monitored)
				holds(monitored, "read metadata", "the container exists", func(ctx context.Context) error { return a.account.ProbeContainer(ctx, k.container) })
				holds(monitored, "read feed", "partition key ranges and change feed can be read", func(ctx context.Context) error { return a.account.ProbeFeed(ctx, k.container) })
			}
			if len(k.leases) > 0 {
				leases := in.part(target, k.leases)
				holds(leases, "query leases", "leases can be queried", func(ctx context.Context) error { return a.account.ProbeLeases(ctx, k.container) })
				leases.try("partition key", func(ctx context.Context) finding { return partitionKey(ctx, a.account, *who, k.container) })
			}
		}
	}
}

// holds says that something holds, or why it does not.
func holds(err error, who principal, what string) finding {
	if err != nil {
		return refused(err, who)
	}
	return good("%s", what)
}

// partitionKey reports whether the SDKs take a container for leases. .NET's allow /partitionKey too,
// for accounts of Gremlin (azure-cosmos-dotnet-v3, DocumentServiceLeaseStoreManagerBuilder.cs), and
// containers that were made without a key, which have a key of the service's own.
func partitionKey(ctx context.Context, account *cosmos.Account, who principal, c cosmos.Container) finding {
	d, _, err := account.Describe(ctx, c)
	if err != nil {
		return refused(err, who)
	}
	switch path := strings.Join(d.PartitionKey, ", "); path {
	case "", "/id", "/_partitionKey":
		return good("the SDKs keep leases in such a container")
	case "/partitionKey":
		return good("its partition key is /partitionKey: .NET keeps leases in such a container, Java does not")
	default:
		return bad("make a lease container with the partition key /id, and name it in leaseContainerId and in the processor",
			"its partition key is %s; the SDKs keep leases only in a container with /id (.NET also with /partitionKey)", path)
	}
}
