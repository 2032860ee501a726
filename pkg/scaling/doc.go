// Package scaling decides how many replicas a change feed processor needs.
//
// It is pure: a measurement, the memory of earlier decisions, a policy and the time come in as
// values; a decision with its reasons and the next memory come out. It does no I/O, reads no clock
// and knows nothing of stores, events or HTTP.
//
// The steps of a decision are numbered in docs/decide.md, and the comment of each function that is
// a step names its number. Start with Decide, which calls them in their order: 1 metricValue and
// activity, 2 threshold, 3 catchUpWithin, 4 maxChangeAge and retention, 5 the steps about
// partitions (maxLeasesPerReplica, evenPartitions, hotPartition, excludeStalled, throughput), 6
// schedules, 7 incomplete, 8 failure, 9 behavior and cooldown, 10 clamp, 12 paused. Step 11 is that
// of a group of processors: Group. DecideThroughput computes the request units that the containers
// of processors need.
//
// The package is internal to the program: its API may change in any release.
package scaling
