package changefeed

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Family is a family of SDKs that write leases of their own format. Two of them under one prefix are
// two processors that read the same changes.
type Family string

// The families.
const (
	FamilyAny    Family = ""       // the family that wrote last
	FamilyDotNet Family = "dotnet" // the .NET v3 SDK, the legacy V2 library and Azure Functions triggers
	FamilyJava   Family = "java"
)

// Identity is what the prefix of a lease id is made of. It distinguishes the leases of one
// processor from all others in the same container (docs/lag.md, Whose lease it is).
type Identity struct {
	ProcessorName string // as given to the SDK; by default "" for Functions triggers and Java
	AccountHost   string // host of the endpoint that the application uses for the monitored account, without a port
	Database      string // id of the monitored database
	Container     string // id of the monitored container
	ContainerRID  string // _rid of the monitored container
}

// Prefix is what the ids of a processor's leases begin with.
type Prefix struct {
	Text   string
	Family Family // that alone writes such ids; FamilyAny if the lease itself says it
}

// Prefixes returns every prefix that the lease ids of a processor can have: with RIDs (.NET, V2,
// Java's EPK processor) and with names (Java's PK-range processor), each with the host as given
// (Java) and in lower case (.NET). The error says that ContainerRID is not the RID of a container.
// Sources: azure-cosmos-dotnet-v3, CosmosContainerExtensions.cs; azure-sdk-for-java, getLeasePrefix
// of its change feed processors.
func (i Identity) Prefixes() ([]Prefix, error) {
	databaseRID, err := DatabaseRID(i.ContainerRID)
	if err != nil {
		return nil, err
	}
	hosts := []string{i.AccountHost}
	if lower := strings.ToLower(i.AccountHost); lower != i.AccountHost {
		hosts = append(hosts, lower)
	}
	prefixes := make([]Prefix, 0, 2*len(hosts))
	for _, host := range hosts {
		prefixes = append(prefixes,
			Prefix{Text: i.ProcessorName + host + "_" + databaseRID + "_" + i.ContainerRID + ".."},
			Prefix{Text: i.ProcessorName + host + "_" + i.Database + "_" + i.Container + "..", Family: FamilyJava})
	}
	return prefixes, nil
}

// ridEncoding is base64 with '-' in place of '/', since RIDs are used in paths.
var ridEncoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-")

// DatabaseRID returns the RID of the database that a container is in: the first four bytes of the
// container's RID. The error says that the argument is not the RID of a container.
func DatabaseRID(containerRID string) (string, error) {
	raw, err := ridEncoding.DecodeString(strings.ReplaceAll(containerRID, "/", "-"))
	if err != nil || len(raw) < 8 {
		return "", fmt.Errorf("%q is not the RID of a container", containerRID)
	}
	return ridEncoding.EncodeToString(raw[:4]), nil
}
