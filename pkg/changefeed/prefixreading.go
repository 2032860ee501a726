package changefeed

import "strings"

// PrefixReading is what the prefix of lease ids says, the reverse of Identity.
type PrefixReading struct {
	Head      string // processor name and account host, which nothing separates
	Database  string // of the monitored container: RID or name, as Container
	Container string
}

// The lengths of RIDs in base64: of 4 and of 8 bytes.
const (
	databaseRIDLength  = 8
	containerRIDLength = 12
)

// ReadRIDs reads a prefix that ends with the RIDs of a database and of a
// container in it, as .NET, V2 and Java's EPK processor have it. RIDs have a
// fixed length and no '_', and one contains the other: there is one reading, and
// names are not taken for RIDs.
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

// cutLast parts a text at the '_' in front of its last n bytes.
func cutLast(text string, n int) (front, last string, ok bool) {
	at := len(text) - n
	if at < 1 || text[at-1] != '_' {
		return "", "", false
	}
	return text[:at-1], text[at:], true
}

// ReadNames returns what a prefix can say that ends with the names of a database
// and of a container, as Java's PK-range processor has it. Names may hold the
// '_' that separates them, so there can be several readings. Where the host can
// be recognized, ownHost or one that the service gives to accounts, only those
// with it at the end of the head are returned.
func ReadNames(prefix, ownHost string) []PrefixReading {
	folded := foldASCII(prefix)
	for _, host := range append([]string{foldASCII(ownHost)}, hostEndings()...) {
		var readings []PrefixReading
		for _, at := range separators(prefix) {
			if strings.HasSuffix(folded[:at], host) {
				readings = append(readings, readTail(prefix[:at], prefix[at+1:])...)
			}
		}
		if len(readings) > 0 {
			return readings
		}
	}
	return nil
}

// hostEndings are those of accounts in the public and the sovereign clouds, that
// of an emulator, and at last any.
func hostEndings() []string {
	return []string{".documents.azure.com", ".documents.azure.us", ".documents.azure.cn", "localhost", ""}
}

// readTail returns every way to part what stands behind the host.
func readTail(head, tail string) []PrefixReading {
	var readings []PrefixReading
	for _, at := range separators(tail) {
		readings = append(readings, PrefixReading{Head: head, Database: tail[:at], Container: tail[at+1:]})
	}
	return readings
}

// separators returns where each '_' stands that has something on both sides.
func separators(text string) []int {
	var places []int
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '_' {
			places = append(places, i)
		}
	}
	return places
}

// SplitHead parts a head into processor name and host, where it ends with
// ownHost in any case: .NET writes it in lower case, Java as it was given.
func SplitHead(head, ownHost string) (processorName, host string, ok bool) {
	at := len(head) - len(ownHost)
	if ownHost == "" || at < 0 || foldASCII(head[at:]) != foldASCII(ownHost) {
		return "", "", false
	}
	return head[:at], head[at:], true
}

// foldASCII lowers the case as hosts ignore it, and keeps the length.
func foldASCII(text string) string {
	folded := []byte(text)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}
