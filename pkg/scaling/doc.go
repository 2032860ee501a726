// Package scaling decides how many replicas a change feed processor needs.
//
// It is pure: a measurement, the memory of earlier decisions, a policy and the
// time come in as values; a decision with its reasons and the next memory come
// out. It knows nothing of stores, events or HTTP. Start with decide.go, whose
// steps stand in the order in which they count (DESIGN 7).
package scaling
