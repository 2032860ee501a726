package changefeed

import (
	"fmt"
	"strings"
)

// Shown is how many partitions a sentence names, if there are more than one beyond them.
const Shown = 3

// List joins names, and counts those beyond the first few: "partitions 0, 1, 2 and 6 more". It is ""
// without names.
func List(what string, names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return what + " " + names[0]
	}
	first, last := names[:len(names)-1], names[len(names)-1]
	if len(names) > Shown+1 {
		first, last = names[:Shown], fmt.Sprintf("%d more", len(names)-Shown)
	}
	return what + "s " + strings.Join(first, ", ") + " and " + last
}

// ListPartitions is List with the leases of partitions.
func ListPartitions(partitions []Partition) string {
	names := make([]string, len(partitions))
	for i, p := range partitions {
		names[i] = p.Lease
	}
	return List("partition", names)
}
