package check

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// use is a container that is monitored, or in which leases are kept.
type use struct {
	cosmos.Container
	leases bool
}

// plan adds what a processor needs: both of its containers, with all that they are in.
func (c *checker) plan(p config.Processor) error {
	monitored := use{Container: cosmos.Container{Database: p.DatabaseID, ID: p.ContainerID}}
	if err := c.container(p.Name, p.Connection, monitored); err != nil {
		return err
	}
	return c.container(p.Name, p.LeaseConnection, use{cosmos.Container{Database: p.LeaseDatabaseID, ID: p.LeaseContainerID}, true})
}

// container adds a container, and the database, the way to sign in and the endpoint that it is behind. The targets of
// a second way to sign in to an endpoint name its setting.
func (c *checker) container(processor string, by config.CosmosConnection, of use) error {
	account, err := c.connections.Account(by)
	if err != nil {
		return err
	}
	e := httpEndpoint(by.Endpoint, by.Setting)
	endpoint, added := c.accounts.child(by.Endpoint, e.name(), processor)
	if added {
		endpoint.reach(e)
	}
	connection, added := endpoint.child(account, e.name(), processor)
	if added {
		if len(endpoint.parts) > 1 {
			connection.target += " (" + by.Setting + ")"
		}
		credential, scope := account.Identity()
		connection.who = c.signIn(connection, by.Setting, by.UsesIdentity(), by.Identity, credential, scope)
		connection.try("read metadata", func(ctx context.Context) finding {
			missing, err := account.ProbeAccount(ctx)
			if err == nil && missing != "" {
				return doubtful("set FEEDSCALE_REGION to the nearest of these", "%s", missing)
			}
			return holds(err, *connection.who, "the account's metadata can be read")
		})
	}
	database, added := connection.child(of.Database, connection.target+"/"+of.Database, processor)
	if added {
		database.unhurried = c.config.Settings.RUBudget > 0
		database.holds("read metadata", "the database exists", func(ctx context.Context) error {
			_, _, err := account.Describe(ctx, cosmos.Container{Database: of.Database})
			return err
		})
	}
	s, added := database.child(of, connection.target+"/"+of.String(), processor)
	switch {
	case !added:
	case of.leases:
		s.holds("query leases", "leases can be queried", func(ctx context.Context) error {
			_, _, err := account.Glance(ctx, of.Container)
			return err
		})
		s.try("partition key", func(ctx context.Context) finding { return partitionKey(ctx, account, *s.who, of.Container) })
	default:
		s.holds("read metadata", "the container exists", func(ctx context.Context) error {
			_, _, err := account.Describe(ctx, of.Container)
			return err
		})
		s.holds("read feed", "partition key ranges and change feed can be read", func(ctx context.Context) error {
			ranges, _, err := account.Ranges(ctx, of.Container)
			if err == nil {
				_, _, err = account.FeedPage(ctx, of.Container, changefeed.Position{Range: ranges[0].ID, Continuation: "*"})
			}
			return err
		})
	}
	return nil
}

// holds says that something holds, or why it does not.
func holds(err error, who principal, what string) finding {
	if err != nil {
		return refused(err, who)
	}
	return good("%s", what)
}

// refused says what is wrong, and how to fix it if a service refused. who asked is named in commands.
func refused(err error, who principal) finding {
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		return bad("", "%v", err)
	}
	fix := strings.ReplaceAll(r.Command, azurecli.Principal, cmp.Or(string(who), azurecli.Principal))
	if fix != "" {
		fix += "   # "
	}
	return bad(fix+r.Remedy, "%s", r.Detail())
}

// partitionKey reports whether the SDKs take a container for leases. .NET's allow /partitionKey too,
// for accounts of Gremlin (azure-cosmos-dotnet-v3, DocumentServiceLeaseStoreManagerBuilder.cs), and
// containers that were made without a key, which have a key of the service's own.
func partitionKey(ctx context.Context, account *cosmos.Account, who principal, c cosmos.Container) finding {
	d, _, err := account.Describe(ctx, c)
	if err != nil {
		return refused(err, who)
	}
	switch path := strings.Join(d.PartitionKey.Paths, ", "); path {
	case "", "/id", "/_partitionKey":
		return good("the SDKs keep leases in such a container")
	case "/partitionKey":
		return good("its partition key is /partitionKey: .NET keeps leases in such a container, Java does not")
	default:
		return bad("make a lease container with the partition key /id, and name it in leaseContainerId and in the processor",
			"its partition key is %s; the SDKs keep leases only in a container with /id (.NET also with /partitionKey)", path)
	}
}
