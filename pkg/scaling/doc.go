// Package scaling decides how many replicas a change feed processor needs.
//
// It is pure: a measurement, the memory of earlier decisions, a policy and the time come in as
// values; a decision with its reasons and the next memory come out. It does no I/O, reads no clock
// and knows nothing of stores, events or HTTP.
//
// The steps of a decision are numbered in docs/decide.md, and the comment of each function that is
// a step names its number. Start with Decide, which calls all but one in their order: step 11, that
// of a group of processors, is Group. DecideThroughput computes the request units that the
// containers of processors need.
//
// The package is internal to the program: its API may change in any release.
package scaling
