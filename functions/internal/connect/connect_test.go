package connect

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

const key = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="

// account is a connection by a key, or by an identity where there is none.
func account(setting, endpoint, key string, identity config.Identity) config.CosmosConnection {
	return config.CosmosConnection{Setting: setting, Endpoint: endpoint, Host: "shop.documents.azure.com", Key: config.NewSecret(key), Identity: identity}
}

// queue is the same to a queue.
func queue(connectionString string, identity config.Identity) config.Events {
	return config.Events{Queue: "scale-events", ServiceBus: config.ServiceBusConnection{
		Setting: "SERVICEBUS", Namespace: "shop.servicebus.windows.net", ConnectionString: config.NewSecret(connectionString), Identity: identity,
	}}
}

const (
	shop      = "https://shop.documents.azure.com/"
	busString = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=" + key
)

// storage is the state table by its connection string.
var storage = config.Table{Name: "feedscale", Setting: "TABLES", ConnectionString: config.NewSecret("AccountName=shop;AccountKey=" + key)}

// byIdentity is the same by its URL.
var byIdentity = config.Table{Name: "feedscale", ServiceURL: "https://shop.table.core.windows.net"}

var (
	system   = config.Identity{Credential: config.CredentialManagedIdentity}
	assigned = config.Identity{Credential: config.CredentialManagedIdentity, ClientID: "66666666-7777-8888-9999-000000000000"}
)

func TestAKeyOrAConnectionStringProvesAConnectionAndElseItsIdentityDoes(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct{ got, want bool }{
		"an account by key":                {account("COSMOS", shop, key, config.Identity{}).UsesIdentity(), false},
		"a key comes before an identity":   {account("COSMOS", shop, key, system).UsesIdentity(), false},
		"an account by an identity":        {account("COSMOS", shop, "", assigned).UsesIdentity(), true},
		"a queue by its connection string": {queue(busString, config.Identity{}).ServiceBus.UsesIdentity(), false},
		"a queue by an identity":           {queue("", system).ServiceBus.UsesIdentity(), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: it uses an identity is %v", rule, c.got)
		}
	}
}

func TestAnAccountIsMadeOnceForEachEndpointAndEachWayToSignIn(t *testing.T) {
	t.Parallel()
	c := New(config.Settings{Concurrency: 4})
	first, err := c.Account(account("COSMOS", shop, key, config.Identity{}))
	testworld.Must(t, err)
	for _, other := range []struct {
		rule       string
		connection config.CosmosConnection
		same       bool
	}{
		{"another setting of the same", account("ALIAS", shop, key, config.Identity{}), true},
		{"another endpoint", account("COSMOS", "https://other.documents.azure.com/", key, config.Identity{}), false},
		{"another key", account("COSMOS", shop, "b3RoZXI=", config.Identity{}), false},
		{"an identity", account("COSMOS", shop, "", system), false},
	} {
		got, err := c.Account(other.connection)
		if err != nil || (got == first) != other.same {
			t.Errorf("%s: the same is %v, %v", other.rule, got == first, err)
		}
	}
	bySystem, err := c.Account(account("ALIAS", shop, "", system))
	testworld.Must(t, err)
	byAssigned, err := c.Account(account("COSMOS", shop, "", assigned))
	testworld.Must(t, err)
	scoped := account("COSMOS", shop, "", system)
	scoped.TokenScope = cosmos.DefaultScope
	byScope, err := c.Account(scoped)
	testworld.Must(t, err)
	if bySystem == byAssigned || bySystem == byScope || len(c.accounts) != 6 {
		t.Errorf("%d accounts, want 6", len(c.accounts))
	}
	var got []string
	for _, a := range []*cosmos.Account{first, bySystem, byScope} {
		_, scope := a.Identity()
		got = append(got, scope)
	}
	if !slices.Equal(got, []string{"", shop + ".default", cosmos.DefaultScope}) {
		t.Errorf("the scopes are %q", got)
	}
}

func TestPriorityAndThroughputBucketAreAskedForWithEveryRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule             string
		settings         config.Settings
		priority, bucket []string // values of the headers
	}{
		{"none by default", config.Settings{Concurrency: 1}, nil, nil},
		{"as set", config.Settings{Concurrency: 1, Priority: "Low", Bucket: 5}, []string{"Low"}, []string{"5"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server, err := cosmosfake.Start(cosmosfake.Options{})
			testworld.Must(t, err)
			t.Cleanup(func() { _ = server.Close() })
			var seen atomic.Int64
			server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				seen.Add(1)
				if priority, bucket := r.Header["X-Ms-Cosmos-Priority-Level"], r.Header["X-Ms-Cosmos-Throughput-Bucket"]; !slices.Equal(priority, c.priority) || !slices.Equal(bucket, c.bucket) {
					t.Errorf("%s with priority %q and bucket %q", r.Kind, priority, bucket)
				}
				return nil
			})
			a, err := New(c.settings).Account(account("COSMOS", server.Endpoint(), cosmosfake.WellKnownKey, config.Identity{}))
			testworld.Must(t, err)
			_, err = a.ProbeAccount(t.Context())
			testworld.Must(t, err)
			if seen.Load() == 0 {
				t.Error("nothing was read")
			}
		})
	}
}

func TestWhatSignsInWithTheSameIdentitySharesItsCredential(t *testing.T) {
	t.Parallel()
	c := New(config.Settings{Concurrency: 4})
	_, err := c.Account(account("COSMOS", shop, "", system))
	testworld.Must(t, err)
	_, err = c.Account(account("OTHER", "https://other.documents.azure.com/", "", system))
	testworld.Must(t, err)
	_, err = c.Queue(queue("", system))
	testworld.Must(t, err)
	_, err = c.Consumer(queue("", system), servicebus.ConsumerOptions{Concurrency: 1})
	testworld.Must(t, err)
	credential, err := c.Credential(system)
	if err != nil || len(c.identities) != 1 || c.identities[system] != credential {
		t.Errorf("%d credentials, %v; want the one of the system", len(c.identities), err)
	}
	_, err = c.Table(byIdentity)
	testworld.Must(t, err)
	other, err := c.Credential(assigned)
	if err != nil || len(c.identities) != 3 || other == credential {
		t.Errorf("%d credentials, %v; want those of the system, of the assigned one and of the environment", len(c.identities), err)
	}
}

func TestEachServicePrincipalSignsInForItself(t *testing.T) {
	t.Parallel()
	c := New(config.Settings{Concurrency: 4})
	one := config.Identity{TenantID: "contoso", ClientID: "one", Secret: config.NewSecret("s-1")}
	other := one
	other.Secret = config.NewSecret("s-2")
	first, err := c.Credential(one)
	testworld.Must(t, err)
	second, err := c.Credential(other)
	testworld.Must(t, err)
	if _, ok := first.(*azidentity.ClientSecretCredential); !ok || first == second {
		t.Errorf("%T and %T, want one of its own for each secret", first, second)
	}
}

func TestNoCredentialIsMadeForWhatAKeyProves(t *testing.T) {
	t.Parallel()
	c := New(config.Settings{Concurrency: 4})
	_, err := c.Account(account("COSMOS", shop, key, system))
	testworld.Must(t, err)
	_, err = c.Queue(queue(busString, system))
	testworld.Must(t, err)
	_, err = c.Consumer(queue(busString, system), servicebus.ConsumerOptions{Concurrency: 1})
	testworld.Must(t, err)
	_, err = c.Table(storage)
	testworld.Must(t, err)
	if len(c.identities) != 0 {
		t.Errorf("%d credentials", len(c.identities))
	}
}

// TestAWorkloadIdentityNeedsItsEnvironment changes the environment, and so runs alone.
func TestAWorkloadIdentityNeedsItsEnvironment(t *testing.T) {
	const tokenFile = "AZURE_FEDERATED_TOKEN_FILE"
	t.Setenv(tokenFile, "") // which restores it in the end
	testworld.Must(t, os.Unsetenv(tokenFile))
	c, workload := New(config.Settings{Concurrency: 4}), config.Identity{Credential: config.CredentialWorkloadIdentity, ClientID: "client", TenantID: "tenant"}
	for rule, connect := range map[string]func() error{
		"an account": func() error { _, err := c.Account(account("COSMOS", shop, "", workload)); return err },
		"a queue":    func() error { _, err := c.Queue(queue("", workload)); return err },
		"a consumer": func() error { _, err := c.Consumer(queue("", workload), servicebus.ConsumerOptions{}); return err },
		"a processor": func() error {
			_, err := c.Processor(config.Processor{Connection: account("COSMOS", shop, "", workload)})
			return err
		},
	} {
		if connect() == nil {
			t.Errorf("%s is connected without a token file", rule)
		}
	}
	t.Setenv(tokenFile, filepath.Join(t.TempDir(), "token"))
	if _, err := c.Credential(workload); err != nil {
		t.Errorf("with its environment: %v", err)
	}
}

func TestAProcessorHasTwoAccountsWhereItsLeasesAreInAnother(t *testing.T) {
	t.Parallel()
	c := New(config.Settings{Concurrency: 4})
	daily, err := crontab.ParseNCRONTAB("0 0 3 * * *")
	testworld.Must(t, err)
	configured := config.Processor{
		Name: "orders", Connection: account("COSMOS", shop, key, config.Identity{}), LeaseConnection: account("LEASES", "https://leases.documents.azure.com/", key, config.Identity{}),
		DatabaseID: "shop", ContainerID: "orders", LeaseDatabaseID: "meta", LeaseContainerID: "leases", IdleSchedule: daily,
	}
	p, err := c.Processor(configured)
	testworld.Must(t, err)
	if p.Account == p.LeaseAccount || p.Container.String() != "shop/orders" || p.LeaseContainer.String() != "meta/leases" {
		t.Errorf("got %+v", p.Processor)
	}
	if p.Schedule != nil || p.IdleSchedule == nil {
		t.Errorf("the schedules are %v and %v, want that of an idle processor alone", p.Schedule, p.IdleSchedule)
	}
	configured.LeaseConnection = configured.Connection
	if p, err = c.Processor(configured); err != nil || p.Account != p.LeaseAccount {
		t.Errorf("%v; two accounts for one connection", err)
	}
}

func TestWithoutAQueueEventsAreLines(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	p, err := New(config.Settings{}).Publisher(config.Events{}, &lines)
	testworld.Must(t, err)
	event := events.ScaleEvent{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Data: events.Data{Processor: "orders", Sequence: 1, Direction: "none", Status: "ok"}}
	body, err := event.Encode()
	testworld.Must(t, err)
	testworld.Must(t, p.Publish(t.Context(), body))
	if lines.String() != string(body)+"\n" {
		t.Errorf("got %q", lines.String())
	}
}

func TestAStateFileThatIsOnlyReadIsNotCreated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "feedscale.db")
	c := New(config.Settings{State: config.State{BoltPath: path}, Listen: "127.0.0.1:1"})
	empty, err := c.Store(true)
	testworld.Must(t, err)
	if _, none := empty.(state.Empty); !none {
		t.Errorf("got %T", empty)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	store, err := c.Store(false)
	testworld.Must(t, err)
	defer store.Close()
	if _, err := c.Store(false); !errors.Is(err, boltstore.ErrInUse) {
		t.Errorf("a file that is open: %v", err)
	}
	running, err := c.Store(true)
	testworld.Must(t, err)
	if _, err := storetest.Load(t.Context(), running, "orders"); !errors.Is(err, boltstore.ErrInUse) || !strings.Contains(err.Error(), "set FEEDSCALE_LISTEN") {
		t.Errorf("a file that is open in a process that does not answer: %v", err)
	}
}

func TestAnEventLivesForThreeHeartbeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule            string
		heartbeat, want time.Duration // 0 = none, and for ever
	}{
		{"three heartbeats", time.Hour, 3 * time.Hour},
		{"at least half an hour", time.Second, 30 * time.Minute},
		{"of the default heartbeat, exactly that", 10 * time.Minute, 30 * time.Minute},
		{"for ever where no heartbeat would replace it", 0, 0},
	} {
		if got := timeToLive(c.heartbeat); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

func TestAnotherEntityOrNamespaceIsAnotherDestination(t *testing.T) {
	t.Parallel()
	place := func(namespace, name string) config.Events {
		return config.Events{Queue: name, ServiceBus: config.ServiceBusConnection{Setting: "SERVICEBUS", Namespace: namespace}}
	}
	seen := make(map[string]string)
	for rule, events := range map[string]config.Events{
		"standard output":                {},
		"a queue":                        place("shop.servicebus.windows.net", "scale-events"),
		"a topic of another name":        place("shop.servicebus.windows.net", "decisions"),
		"a queue of that name elsewhere": place("test.servicebus.windows.net", "scale-events"),
	} {
		destination := Destination(events)
		if other, ok := seen[destination]; ok {
			t.Errorf("%s and %s are both %q", rule, other, destination)
		}
		seen[destination] = rule
	}
}
