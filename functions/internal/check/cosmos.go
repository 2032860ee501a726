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

// checkAccounts tries every account, and then measures the processors for which nothing fails.
func (c *checker) checkAccounts(ctx context.Context) []Line {
	var tasks []func() []Line
	for _, e := range c.endpoints {
		tasks = append(tasks, func() []Line { return c.checkEndpoint(ctx, e) })
	}
	lines := inOrder(c.config.Settings.Concurrency, tasks)
	return append(lines, c.measure(ctx, lines)...)
}

func (c *checker) checkEndpoint(ctx context.Context, e *accountEndpoint) []Line {
	network := section{target: e.name(), processors: e.processors}
	network.reach(ctx, e.serviceEndpoint)
	tasks := []func() []Line{func() []Line { return network.lines }}
	for _, a := range e.connections {
		suffix := ""
		if len(e.connections) > 1 {
			suffix = " (" + a.connection.Setting + ")"
		}
		tasks = append(tasks, func() []Line { return c.checkConnection(ctx, &network, e, a, suffix) })
	}
	return inOrder(c.config.Settings.Concurrency, tasks)
}

func (c *checker) checkConnection(ctx context.Context, network *section, e *accountEndpoint, a *accountConnection, suffix string) []Line {
	s := network.part(e.name()+suffix, a.processors)
	who := c.signIn(ctx, s, connect.CosmosAccess(a.connection), a.account.Credential(), a.account.Scope())
	s.try(ctx, "read metadata", func(ctx context.Context) finding {
		return holds(a.account.ProbeAccount(ctx), who, "the account's metadata can be read")
	})
	s.unhurried = c.config.Settings.RUBudget > 0
	tasks := []func() []Line{func() []Line { return s.lines }}
	for _, d := range a.databases {
		tasks = append(tasks, func() []Line {
			return c.checkDatabase(ctx, a.account, who, d, s.part(e.name()+"/"+d.id+suffix, d.processors), suffix)
		})
	}
	return inOrder(c.config.Settings.Concurrency, tasks)
}

func (c *checker) checkDatabase(ctx context.Context, account *cosmos.Account, who principal, d *checkedDatabase, s *section, suffix string) []Line {
	s.try(ctx, "read metadata", func(ctx context.Context) finding {
		return holds(account.ProbeDatabase(ctx, d.id), who, "the database exists")
	})
	tasks := []func() []Line{func() []Line { return s.lines }}
	for _, k := range d.containers {
		target := strings.TrimSuffix(s.target, suffix) + "/" + k.container.ID + suffix
		tasks = append(tasks, func() []Line { return checkContainer(ctx, account, who, k, s, target) })
	}
	return inOrder(c.config.Settings.Concurrency, tasks)
}

func checkContainer(ctx context.Context, account *cosmos.Account, who principal, k *checkedContainer, database *section, target string) []Line {
	monitored, leases := database.part(target, k.monitored), database.part(target, k.leases)
	if len(k.monitored) > 0 {
		monitored.try(ctx, "read metadata", func(ctx context.Context) finding {
			return holds(account.ProbeContainer(ctx, k.container), who, "the container exists")
		})
		monitored.try(ctx, "read feed", func(ctx context.Context) finding {
			return holds(account.ProbeFeed(ctx, k.container), who, "partition key ranges and change feed can be read")
		})
	}
	if len(k.leases) > 0 {
		leases.try(ctx, "query leases", func(ctx context.Context) finding {
			return holds(account.ProbeLeases(ctx, k.container), who, "leases can be queried")
		})
		leases.try(ctx, "partition key", func(ctx context.Context) finding { return partitionKey(ctx, account, who, k.container) })
	}
	return append(monitored.lines, leases.lines...)
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
