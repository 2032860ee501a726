package changefeed

import (
	"slices"
	"strings"
)

// PrefixReading is one way to read the prefix of lease ids: the reverse of Identity.
type PrefixReading struct {
	Head      string // processor name and account host, without a separator between them
	Database  string // of the monitored container: its RID or name, like Container
	Container string
}

// The lengths of RIDs in base64 characters: a database's has 4 bytes, a container's 8.
const (
	databaseRIDLength  = 8
	containerRIDLength = 12
)

// ReadRIDs reads a prefix that ends with the RIDs of a database and of a container in it, as .NET,
// V2 and Java's EPK processor write it. There is at most one reading, since RIDs have a fixed
// length and no '_'; names are not mistaken for RIDs, since the container's RID begins with the
// database's.
func ReadRIDs(prefix string) (r PrefixReading, ok bool) {
	front, container, ok := cutLast(prefix, containerRIDLength)
	if !ok {
		return PrefixReading{}, false
	}
	head, database, ok := cutLast(front, databaseRIDLength)
	if !ok {
		return PrefixReading{}, false
	}
	if of, err := DatabaseRID(container); err != nil || of != database {
		return PrefixReading{}, false
	}
	return PrefixReading{Head: head, Database: database, Container: container}, true
}

// cutLast splits a text at the '_' in front of its last n bytes.
func cutLast(text string, n int) (front, last string, ok bool) {
	at := len(text) - n
	if at < 1 || text[at-1] != '_' {
		return "", "", false
	}
	return text[:at-1], text[at:], true
}

// ReadNames returns the possible readings of a prefix that ends with the names of a database and of
// a container, as Java's PK-range processor writes it. Names may contain the '_' that separates
// them, so there can be several readings. If the host can be recognized, as ownHost or as a host
// of the service, only the readings whose head ends with it are returned.
func ReadNames(prefix, ownHost string) []PrefixReading {
	for _, host := range slices.Concat([]string{ownHost}, hostEndings) {
		var readings []PrefixReading
		for _, at := range separators(prefix) {
			head, tail := prefix[:at], prefix[at+1:]
			if !endsWith(head, host) {
				continue
			}
			for _, at := range separators(tail) {
				readings = append(readings, PrefixReading{Head: head, Database: tail[:at], Container: tail[at+1:]})
			}
		}
		if len(readings) > 0 {
			return readings
		}
	}
	return nil
}

// hostEndings are the endings of the hosts of accounts in the public and the sovereign clouds, the host
// of an emulator and, last, "" for any host.
var hostEndings = []string{".documents.azure.com", ".documents.azure.us", ".documents.azure.cn", "localhost", ""}

// separators returns the index of each '_' that has something on both sides.
func separators(text string) []int {
	var places []int
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '_' {
			places = append(places, i)
		}
	}
	return places
}

// SplitHead splits a head into processor name and host if it ends with ownHost, in any case: .NET writes
// the host in lower case, Java as it was given.
func SplitHead(head, ownHost string) (processorName, host string, ok bool) {
	if ownHost == "" || !endsWith(head, ownHost) {
		return "", "", false
	}
	at := len(head) - len(ownHost)
	return head[:at], head[at:], true
}

// endsWith reports whether a text ends with another one, in any case.
func endsWith(text, end string) bool {
	at := len(text) - len(end)
	return at >= 0 && strings.EqualFold(text[at:], end)
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
