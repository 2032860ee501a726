package servicebusfake

import "strings"

// Suffixes of an entity's path, compared without regard to case.
const (
	deadLetterSuffix = "$DeadLetterQueue"
	managementSuffix = "$management"
	cbsAddress       = "$cbs"
)

// address is what the address of a link's terminus means.
type address struct {
	entity     string // the queue's path as it was written
	deadLetter bool   // its dead-letter queue is meant
	management bool   // its management node is meant
}

func parseAddress(path string) address {
	var a address
	// Some clients write the whole URL of the entity.
	if _, rest, isURL := strings.Cut(path, "://"); isURL {
		_, path, _ = strings.Cut(rest, "/")
	}
	a.entity = strings.Trim(path, "/")
	a.entity, a.management = cutLast(a.entity, managementSuffix)
	a.entity, a.deadLetter = cutLast(a.entity, deadLetterSuffix)
	return a
}

func cutLast(path, suffix string) (string, bool) {
	rest, last := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		rest, last = path[:i], path[i+1:]
	}
	if !strings.EqualFold(last, suffix) {
		return path, false
	}
	return rest, true
}

// path is the entity that the address belongs to, in lower case: what claims and queues are found
// by.
func (a address) path() string {
	path := strings.ToLower(a.entity)
	if a.deadLetter {
		path += "/" + strings.ToLower(deadLetterSuffix)
	}
	return path
}
