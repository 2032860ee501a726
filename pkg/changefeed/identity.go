package changefeed

import (
	"encoding/base64"
	"fmt"
	"slices"
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

// Prefixes returns every prefix that the lease ids of a processor can have: with RIDs (.NET, V2,
// Java's EPK processor) and with names (Java's PK-range processor), each with the host as given
// (Java) and in lower case (.NET), which come last. The error says that ContainerRID is not the RID of a container.
func (i Identity) Prefixes() (prefixes []string, _ error) {
	databaseRID, err := DatabaseRID(i.ContainerRID)
	if err != nil {
		return nil, err
	}
	for _, host := range slices.Compact([]string{i.AccountHost, strings.ToLower(i.AccountHost)}) {
		head := i.ProcessorName + host + "_"
		prefixes = append(prefixes, head+databaseRID+"_"+i.ContainerRID+"..", head+i.Database+"_"+i.Container+"..")
	}
	return prefixes, nil
}

// DatabaseRID returns the RID of the database that a container is in: the first four bytes of the
// container's RID. RIDs are base64 with '-' in place of '/', since they are used in paths. The error says that
// the argument is not the RID of a container.
func DatabaseRID(containerRID string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(containerRID, "-", "/"))
	if err != nil || len(raw) < 8 {
		return "", fmt.Errorf("%q is not the RID of a container", containerRID)
	}
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(raw[:4]), "/", "-"), nil
}

// PrefixReading is one way to read the prefix of lease ids: the reverse of Identity.
type PrefixReading struct {
	Head      string // processor name and account host, without a separator between them
	Database  string // of the monitored container: its RID or name, like Container
	Container string
}

// ridLength is the length of the RID of a container, of 8 bytes.
const ridLength = 12

// ReadRIDs reads a prefix that ends with RIDs, as .NET, V2 and Java's EPK processor write it. Names are not
// mistaken for RIDs, since the container's RID begins with the database's.
func ReadRIDs(prefix string) (r PrefixReading, ok bool) {
	container := prefix[max(0, len(prefix)-ridLength):]
	database, err := DatabaseRID(container)
	head, ok := strings.CutSuffix(prefix, "_"+database+"_"+container)
	if err != nil || !ok || head == "" {
		return PrefixReading{}, false
	}
	return PrefixReading{Head: head, Database: database, Container: container}, true
}

// ReadNames returns the possible readings of a prefix that ends with names, as Java's PK-range processor
// writes it: those whose head ends with ownHost, or else all. Names may contain the '_' that separates them.
func ReadNames(prefix, ownHost string) (readings []PrefixReading) {
	parts := strings.Split(prefix, "_")
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			r := PrefixReading{strings.Join(parts[:i], "_"), strings.Join(parts[i:j], "_"), strings.Join(parts[j:], "_")}
			if r.Head != "" && r.Database != "" && r.Container != "" {
				readings = append(readings, r)
			}
		}
	}
	other := func(r PrefixReading) bool { _, _, ends := SplitHead(r.Head, ownHost); return !ends }
	if own := slices.DeleteFunc(slices.Clone(readings), other); len(own) > 0 {
		return own
	}
	return readings
}

// SplitHead splits a head into processor name and host if it ends with ownHost, in any case: .NET writes
// the host in lower case, Java as it was given.
func SplitHead(head, ownHost string) (processorName, host string, ok bool) {
	at := len(head) - len(ownHost)
	if ownHost == "" || at < 0 || !strings.EqualFold(head[at:], ownHost) {
		return "", "", false
	}
	return head[:at], head[at:], true
}

// NameDistance is how much of two names differs: what is left of the longer one without their common
// beginning and end, in bytes.
func NameDistance(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}
