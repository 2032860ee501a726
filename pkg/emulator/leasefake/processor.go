package leasefake

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Processor identifies the owner of leases: the SDKs build the ids of leases from it.
// [Processor.In] fills in its RIDs from an account.
type Processor struct {
	// of the processor, which V2 and Java call the lease prefix; "" is what Functions triggers and
	// Java have by default
	Name string
	// of the monitored account's endpoint, without a port, as the application spells it
	Host         string
	Database     string // id of the monitored database
	Container    string // id of the monitored container
	DatabaseRID  string // _rid of the monitored database
	ContainerRID string // _rid of the monitored container
}

// In returns the processor with the RIDs that its container has in an account. It fails if the
// account has no such container.
func (p Processor) In(ctx context.Context, account *cosmosfake.Server) (Processor, error) {
	client, err := azcosmos.NewClientFromConnectionString(account.ConnectionString(), nil)
	if err != nil {
		return Processor{}, fmt.Errorf("connecting to the account: %w", err)
	}
	defer client.Close()
	return p.Resolve(ctx, client)
}

// Resolve is [Processor.In] for the account that a client is connected to.
func (p Processor) Resolve(ctx context.Context, client *azcosmos.Client) (Processor, error) {
	fail := func(err error) (Processor, error) {
		return Processor{}, fmt.Errorf("reading the RIDs of container %s/%s: %w", p.Database, p.Container, err)
	}
	database, err := client.NewDatabase(p.Database)
	if err != nil {
		return fail(err)
	}
	databaseAnswer, err := database.Read(ctx, nil)
	if err != nil {
		return fail(err)
	}
	container, err := database.NewContainer(p.Container)
	if err != nil {
		return fail(err)
	}
	containerAnswer, err := container.Read(ctx, nil)
	if err != nil {
		return fail(err)
	}
	p.DatabaseRID, p.ContainerRID = databaseAnswer.DatabaseProperties.ResourceID, containerAnswer.ContainerProperties.ResourceID
	return p, nil
}

// DotNetPrefix is what stands in front of ".." in the ids of leases that .NET
// and V2 write: .NET makes the host of a URI lower case.
func (p Processor) DotNetPrefix() string {
	return p.Name + strings.ToLower(p.Host) + "_" + p.DatabaseRID + "_" + p.ContainerRID
}

// JavaPKPrefix is the same of Java's PK-range leases, which have the names in
// place of the RIDs.
func (p Processor) JavaPKPrefix() string {
	return p.Name + p.Host + "_" + p.Database + "_" + p.Container
}

// JavaEPKPrefix is the same of Java's EPK leases.
func (p Processor) JavaEPKPrefix() string {
	return p.Name + p.Host + "_" + p.DatabaseRID + "_" + p.ContainerRID
}
