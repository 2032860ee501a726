package changefeed

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Identity is what a lease id is built of: it tells one processor's leases
// from every other's in the same container.
type Identity struct {
	ProcessorName string // "" for Functions triggers and Java, by default
	AccountHost   string // host that the application itself uses for the monitored account, without a port
	Database      string // id of the monitored database
	Container     string // id of the monitored container
	ContainerRID  string // _rid of the monitored container
}

// Prefixes returns every prefix that the leases of a processor can have, as the
// SDKs build it: with RIDs (.NET, V2, Java's EPK processor) and with names
// (Java's PK-range processor); with the host as given (Java) and in lower case
// (.NET). It fails where the RID is not one.
func (i Identity) Prefixes() ([]string, error) {
	databaseRID, err := DatabaseRID(i.ContainerRID)
	if err != nil {
		return nil, err
	}
	hosts := []string{i.AccountHost}
	if lower := strings.ToLower(i.AccountHost); lower != i.AccountHost {
		hosts = append(hosts, lower)
	}
	prefixes := make([]string, 0, 2*len(hosts))
	for _, host := range hosts {
		prefixes = append(prefixes,
			i.ProcessorName+host+"_"+databaseRID+"_"+i.ContainerRID+"..",
			i.ProcessorName+host+"_"+i.Database+"_"+i.Container+"..")
	}
	return prefixes, nil
}

// ridEncoding is base64 with '-' where the standard alphabet has '/', since a
// RID stands in a path.
var ridEncoding = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-")

// DatabaseRID returns the RID of the database that a container's RID names:
// its first four bytes.
func DatabaseRID(containerRID string) (string, error) {
	raw, err := ridEncoding.DecodeString(strings.ReplaceAll(containerRID, "/", "-"))
	if err != nil || len(raw) < 8 {
		return "", fmt.Errorf("%q is not the RID of a container", containerRID)
	}
	return ridEncoding.EncodeToString(raw[:4]), nil
}
