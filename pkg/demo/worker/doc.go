// Package worker is one host of a change feed processor that treats its leases as version 3 of the
// .NET SDK does: which documents it keeps, when it writes them, how it shares partitions with other
// hosts, and what it leaves behind when it ends.
//
// It is written for the demo and for tests on the stand-in account, from what the SDK does and not
// from what feedscale reads: it imports nothing of feedscale but the stand-ins, so that the two can
// contradict each other. What nobody has a use for it does not do: other modes of the feed,
// hierarchical partition keys, lease containers that are not partitioned by /id.
//
// Start reading at [Run]; the life of one owned partition is in partition.go, and what becomes of
// its lease in a split or a merge in reshape.go. The lease documents are those of leasefake, what
// is done to them is in leases.go, and the rule by which hosts share partitions is in balance.go.
//
// The package is internal to the program: its API may change in any release.
package worker
