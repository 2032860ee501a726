// Package connect opens what a configuration names: accounts, stores and queues. It is the only place
// that decides whether a connection proves itself with a key or with an identity, and the only one
// that makes credentials. Nothing here makes a request.
//
// Start with [New].
//
// The package is internal to the program: its API may change in any release.
package connect

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/cosmos/manager"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// Connections makes each account and each credential once, however many processors share it. It is
// not safe for concurrent use.
type Connections struct {
	settings config.Settings
	accounts map[config.CosmosConnection]*cosmos.Account

	mu         sync.Mutex // guards identities: check signs in to several services at once
	identities map[config.Identity]azcore.TokenCredential
}

// New returns Connections under the settings of a program.
func New(settings config.Settings) *Connections {
	return &Connections{
		settings:   settings,
		accounts:   make(map[config.CosmosConnection]*cosmos.Account),
		identities: make(map[config.Identity]azcore.TokenCredential),
	}
}

// Processor connects a processor of the configuration to its accounts.
func (c *Connections) Processor(p config.Processor) (poller.Processor, error) {
	account, err := c.Account(p.Connection)
	if err != nil {
		return poller.Processor{}, err
	}
	leaseAccount, err := c.Account(p.LeaseConnection)
	if err != nil {
		return poller.Processor{}, err
	}
	connected := poller.Processor{
		Processor: estimator.Processor{
			Name:           p.Name,
			Account:        account,
			Container:      cosmos.Container{Database: p.DatabaseID, ID: p.ContainerID},
			LeaseAccount:   leaseAccount,
			LeaseContainer: cosmos.Container{Database: p.LeaseDatabaseID, ID: p.LeaseContainerID},
			ProcessorName:  p.ProcessorName,
			NamesInUse:     p.NamesInUse,
			AccountHost:    p.AccountHost,
			StartFrom:      p.StartFrom,
			LeaseFormat:    p.LeaseFormat,
		},
		Group:       p.Group,
		Policy:      p.Policy,
		SignalQueue: p.SignalQueue,
		Throughput:  len(p.Throughput.Containers) > 0,
		Target:      p.Target,
	}
	if !p.Schedule.IsZero() {
		connected.Schedule = p.Schedule
	}
	if !p.IdleSchedule.IsZero() {
		connected.IdleSchedule = p.IdleSchedule
	}
	return connected, nil
}

// Account returns the account of a connection.
func (c *Connections) Account(connection config.CosmosConnection) (*cosmos.Account, error) {
	key := connection
	key.Setting, key.Host, key.ResourceID = "", "", "" // say nothing of how the account is called
	if a := c.accounts[key]; a != nil {
		return a, nil
	}
	o := cosmos.Options{
		Endpoint: connection.Endpoint, Setting: connection.Setting, Key: connection.Key.Reveal(), Scope: connection.TokenScope,
		Priority: c.settings.Priority, Bucket: c.settings.Bucket,
		Concurrency: c.settings.Concurrency, Budget: c.settings.RUBudget, Region: c.settings.Region,
	}
	if connection.UsesIdentity() {
		var err error
		if o.Credential, err = c.Credential(connection.Identity); err != nil {
			return nil, err
		}
	}
	a, err := cosmos.NewAccount(o)
	if err == nil {
		c.accounts[key] = a
	}
	return a, err
}

// Throughput connects a container whose throughput follows processors.
func (c *Connections) Throughput(t config.Throughput, named config.ThroughputContainer) (*throughput.Container, error) {
	way, err := c.WayToThroughput(named.Connection)
	return &throughput.Container{
		Account: named.Connection.Endpoint, Host: named.Connection.Host, Setting: named.Connection.Setting, Client: way,
		Container: cosmos.Container{Database: named.DatabaseID, ID: named.ContainerID},
		Apply:     t.Mode == config.ThroughputApply,
		Policy:    scaling.ThroughputPolicy{Min: named.Min, Max: named.Max, ScaleDownAfter: t.ScaleDownAfter},
	}, err
}

// WayToThroughput returns what reads and replaces the throughput of an account: with a key the account
// itself, with an identity Azure Resource Manager.
func (c *Connections) WayToThroughput(connection config.CosmosConnection) (throughput.Client, error) {
	if !connection.UsesIdentity() {
		return c.Account(connection)
	}
	credential, err := c.Credential(connection.Identity)
	if err != nil {
		return nil, err
	}
	return manager.New(manager.Options{ResourceID: connection.ResourceID, Setting: connection.Setting, Host: connection.Host, Credential: credential, Client: clientOptions()})
}

// clientOptions has an SDK read no more of an answer than is bounded.
func clientOptions() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: bounded.NewClient()}
}

// Credential returns the credential that proves an identity. It asks for no token, and is safe for concurrent
// use.
func (c *Connections) Credential(i config.Identity) (credential azcore.TokenCredential, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if credential = c.identities[i]; credential != nil {
		return credential, nil
	}
	switch {
	case !i.Secret.IsZero():
		credential, err = azidentity.NewClientSecretCredential(i.TenantID, i.ClientID, i.Secret.Reveal(), &azidentity.ClientSecretCredentialOptions{ClientOptions: clientOptions()})
	case i.Credential == config.CredentialManagedIdentity:
		o := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: clientOptions()}
		if i.ClientID != "" {
			o.ID = azidentity.ClientID(i.ClientID)
		}
		credential, err = azidentity.NewManagedIdentityCredential(o)
	case i.Credential == config.CredentialWorkloadIdentity:
		credential, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: clientOptions(), ClientID: i.ClientID, TenantID: i.TenantID})
	default:
		credential, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: clientOptions(), TenantID: i.TenantID})
	}
	if err == nil {
		c.identities[i] = credential
	}
	return credential, err
}

// Publisher returns where events go: to lines, or to a queue or topic.
func (c *Connections) Publisher(e config.Events, lines io.Writer) (events.Publisher, error) {
	if e.Queue == "" {
		return events.NewStdout(lines), nil
	}
	return c.Queue(e)
}

// Destination names where events go: another queue or topic, or another namespace behind the same
// setting, is another one.
func Destination(e config.Events) string {
	if e.Queue == "" {
		return "stdout:"
	}
	return e.ServiceBus.Namespace + "/" + e.Queue
}

const (
	heartbeatsLived = 3                // a message lives so many heartbeats: then a later one has replaced it
	leastLife       = 30 * time.Minute // of a message
)

// timeToLive is how long a scale event may wait in the queue; 0, if there is no heartbeat that would
// replace it, is for as long as the queue keeps it.
func timeToLive(heartbeat time.Duration) time.Duration {
	if heartbeat <= 0 {
		return 0
	}
	return max(heartbeatsLived*heartbeat, leastLife)
}

// Queue returns the publisher to a Service Bus queue or topic.
func (c *Connections) Queue(e config.Events) (*servicebus.Publisher, error) {
	o := servicebus.PublisherOptions{TimeToLive: timeToLive(c.settings.Heartbeat)}
	if !e.ServiceBus.UsesIdentity() {
		return servicebus.NewPublisher(e.ServiceBus.ConnectionString.Reveal(), e.Queue, o)
	}
	credential, err := c.Credential(e.ServiceBus.Identity)
	if err != nil {
		return nil, err
	}
	return servicebus.NewPublisherWithIdentity(e.ServiceBus.Namespace, credential, e.Queue, o)
}

// Signals returns what keeps the signal queues, which are in the namespace of the events; nil if there
// is none.
func (c *Connections) Signals(e config.Events, o servicebus.SignalsOptions) (*servicebus.Signals, error) {
	if e.ServiceBus.Setting == "" {
		return nil, nil
	}
	publisher, err := c.Queue(e)
	if err != nil {
		return nil, err
	}
	return servicebus.NewSignals(publisher, o), nil
}

// Consumer returns the consumer of a Service Bus queue or subscription.
func (c *Connections) Consumer(e config.Events, o servicebus.ConsumerOptions) (*servicebus.Consumer, error) {
	o.Subscription = e.Subscription
	if !e.ServiceBus.UsesIdentity() {
		return servicebus.NewConsumer(e.ServiceBus.ConnectionString.Reveal(), e.Queue, o)
	}
	credential, err := c.Credential(e.ServiceBus.Identity)
	if err != nil {
		return nil, err
	}
	return servicebus.NewConsumerWithIdentity(e.ServiceBus.Namespace, credential, e.Queue, o)
}

// Store opens the state. readOnly takes a state file that is not there for an empty one, instead of
// creating it. If another process has it open, the store is an API, which asks that process.
func (c *Connections) Store(readOnly bool) (state.Store, error) {
	s := c.settings.State
	if s.BoltPath == "" {
		return c.Table(s.Table)
	}
	open := boltstore.Open // waits: another command that reads is done soon
	if readOnly {
		if _, err := os.Stat(s.BoltPath); errors.Is(err, os.ErrNotExist) {
			return state.Empty{}, nil
		}
		if connection, err := net.DialTimeout("tcp", c.settings.Listen, time.Second); err == nil {
			connection.Close()
			open = boltstore.OpenAtOnce // who listens does not close the file
		}
	}
	store, err := open(s.BoltPath)
	if readOnly && errors.Is(err, boltstore.ErrInUse) {
		api, wrong := NewAPI("http://"+c.settings.Listen, c.settings.APIKey.Reveal())
		if wrong != nil {
			return nil, fmt.Errorf("%w; nor does FEEDSCALE_LISTEN, %s, say where it can be asked", err, c.settings.Listen)
		}
		api.inUse = err
		return api, nil
	}
	if err != nil {
		return nil, err // not a *boltstore.Store that is nil
	}
	return store, nil
}

// Table returns the store of a state table.
func (c *Connections) Table(t config.Table) (*tablestore.Store, error) {
	if t.ServiceURL == "" {
		return tablestore.OpenWithConnectionString(t.ConnectionString.Reveal(), t.Name, clientOptions())
	}
	credential, err := c.Credential(config.Identity{})
	if err != nil {
		return nil, err
	}
	return tablestore.OpenWithIdentity(t.ServiceURL, t.Name, credential, clientOptions())
}
