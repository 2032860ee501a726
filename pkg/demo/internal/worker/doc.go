// Package worker is one host of a change feed processor that treats its leases as the .NET SDK (v3) does: which documents it
// keeps, when it writes them, how it shares partitions with other hosts, and what it leaves behind when it ends.
//
// It is written for the demo and its stand-in account, from what the SDK does and not from what feedscale reads: it imports
// nothing of feedscale, so that the two can contradict each other. What the demo has no use for it does not do: other modes of
// the feed, hierarchical partition keys, lease containers that are not partitioned by /id.
//
// Start reading at [Run]; the life of one owned partition is in partition.go, and what becomes of its lease in a split or a
// merge in reshape.go. The lease documents are in lease.go and leases.go, and the rule by which hosts share partitions is in
// balance.go.
package worker
