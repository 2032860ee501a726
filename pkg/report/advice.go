package report

import "github.com/feedscale/feedscale/pkg/changefeed"

// Advice says what a status means, and what to do about it.
type Advice struct {
	Status changefeed.Status `json:"status"`
	Why    string            `json:"why"`
	Do     string            `json:"do"`
}

// Advices returns that of every status, worst first, in the words of docs/status.md; a test compares the
// two.
func Advices() []Advice {
	return []Advice{
		{changefeed.StatusUnknown, "it could not be measured", "read the error: it says what to correct"},
		{
			changefeed.StatusStalled,
			"hung: one owner keeps the lease, and its handler does not return: a deadlock, a call without a timeout. flapping: the lease is given back and taken again: the handler throws, or its process dies, at the same change each time",
			"look into the application, at the change at that position. More replicas do not help. If batches really take so long, raise stalledAfter",
		},
		{
			changefeed.StatusExpiring,
			"the processor is too slow, or was off; what leaves the retention is never delivered",
			"scale out by hand, or lengthen the time to live. Step 4 of a decision has asked for replicas since half of the retention: see what keeps it from more, maxReplicaCount or the number of partitions",
		},
		{
			changefeed.StatusBootstrap,
			"the processor never ran",
			"nothing: one replica is asked for. If it stays: processorName, leaseContainerId or accountHost differ from what the application uses; the reason names the leases that are near, and feedscale leases shows all",
		},
		{changefeed.StatusSplitting, "a split or a merge", "nothing: a running replica replaces it. If it stays: see that replicas run"},
		{
			changefeed.StatusUnclaimed,
			"no replica runs, or those that do have another processorName or lease container",
			"see that whatever acts on the decisions does, and that the replicas start. Before stalledAfter it is lagging: scaling from zero takes a while",
		},
		{changefeed.StatusUncheckpointed, "its owner has not written a checkpoint yet", "nothing: one replica stays"},
		{changefeed.StatusLagging, "changes are pending, and are being processed", "nothing"},
		{changefeed.StatusOK, "nothing is pending", "nothing"},
	}
}
