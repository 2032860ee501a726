// Package emulator starts stand-ins of an Azure Cosmos DB account and of a Service Bus namespace,
// in the process that calls it: for tests of whatever uses either, without Docker. It has what
// `feedscale emulate` serves; docs/stand-ins.md says what is offered.
//
// Start reading at Start. What the stand-ins can do beyond connection strings is in cosmosfake and
// servicebusfake; faults.go scripts them over HTTP. The package imports the standard library alone,
// and so adds no module to a test's.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package emulator

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// Options describe an emulator. The zero value is an empty account and an empty namespace, on free
// ports of 127.0.0.1.
type Options struct {
	Cosmos     cosmosfake.Options
	ServiceBus servicebusfake.Options // with its queues and topics
	Databases  []string               // beside those of Containers
	Containers []Container
	// Control is the address at which POST /faults is served; "" = it is not. Whoever reaches it
	// may script the stand-ins.
	Control string
	// AnyToken accepts every Microsoft Entra ID token unchecked, and serves the identity endpoint
	// of App Service beside Control, on a free port where that is "". It is refused where an
	// address is not of loopback.
	AnyToken bool
	// Logger receives what a refusal does not show to the client; nil = nothing is logged.
	Logger *slog.Logger
}

// Container is a container and its database, which is made with it. Without a PartitionKey it is
// /id.
type Container struct {
	Database                 string `yaml:"database"`
	cosmosfake.ContainerSpec `yaml:",inline"`
}

// Emulator is a running pair of stand-ins.
type Emulator struct {
	Cosmos     *cosmosfake.Server
	ServiceBus *servicebusfake.Server

	control *control // nil: none
}

// Start listens and serves until Close. The error names the option that cannot be used.
func Start(o Options) (*Emulator, error) {
	if o.AnyToken {
		if err := o.takeAnyToken(); err != nil {
			return nil, err
		}
	}
	if o.Cosmos.Logger == nil {
		o.Cosmos.Logger = o.Logger
	}
	account, err := cosmosfake.Start(o.Cosmos)
	if err != nil {
		return nil, err
	}
	e := &Emulator{Cosmos: account}
	if err := e.create(o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.ServiceBus, err = servicebusfake.Start(o.ServiceBus); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if o.Control != "" {
		regions := o.Cosmos.Regions
		if len(regions) == 0 {
			regions = []string{"Local"}
		}
		if e.control, err = startControl(o.Control, o.AnyToken, account, e.ServiceBus, regions); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// takeAnyToken makes both stand-ins accept every token, where nobody but this machine can reach
// them.
func (o *Options) takeAnyToken() error {
	if o.Control == "" {
		o.Control = "127.0.0.1:0"
	}
	for _, address := range []string{o.Cosmos.Addr, o.ServiceBus.Addr, o.Control} {
		if address != "" && !isLoopback(address) {
			return fmt.Errorf("any token is accepted on loopback only, and %s is not: name an address such as 127.0.0.1:8081", address)
		}
	}
	accept := func(string) error { return nil }
	o.Cosmos.Token, o.ServiceBus.Token = accept, accept
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// create makes the databases and containers.
func (e *Emulator) create(o Options) error {
	databases := slices.Clone(o.Databases)
	for _, c := range o.Containers {
		databases = append(databases, c.Database)
	}
	slices.Sort(databases)
	for _, id := range slices.Compact(databases) {
		if err := e.Cosmos.CreateDatabase(id); err != nil {
			return err
		}
	}
	for _, c := range o.Containers {
		if len(c.PartitionKey) == 0 {
			c.PartitionKey = []string{"/id"}
		}
		if err := e.Cosmos.CreateContainer(c.Database, c.ContainerSpec); err != nil {
			return err
		}
	}
	return nil
}

// Control is the address of POST /faults, such as http://127.0.0.1:40001; "" if it is not served.
func (e *Emulator) Control() string {
	if e.control == nil {
		return ""
	}
	return e.control.url()
}

// Identity returns the values of IDENTITY_ENDPOINT and IDENTITY_HEADER with which
// DefaultAzureCredential gets tokens here. Both are "" without Options.AnyToken.
func (e *Emulator) Identity() (endpoint, header string) {
	if e.control == nil || e.control.header == "" {
		return "", ""
	}
	return e.control.url() + identityPath, e.control.header
}

// Close ends every connection at once and returns when nothing of the emulator runs any more.
func (e *Emulator) Close() error {
	var errs []error
	if e.control != nil {
		errs = append(errs, e.control.close())
	}
	if e.ServiceBus != nil {
		errs = append(errs, e.ServiceBus.Close())
	}
	return errors.Join(append(errs, e.Cosmos.Close())...)
}
