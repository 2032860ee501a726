// Package simulate replays the changes of a change feed against a scaling policy, with a model of
// the workers, so that thresholds can be tuned on recorded changes and not on production.
//
// It is pure: traces, policies and the seed come in as values, and the same values give the same
// Result. It reads no file and no clock, and knows nothing of state or events. The decisions are
// made by package scaling itself. docs/tune.md shows how it is used and what the model leaves out.
//
// Start with Run. trace.go, generate.go and recorded.go say what arrives, workers.go how it is
// processed, scaler.go and keda.go how replicas are decided.
//
// The package is internal to the program: its API may change in any release.
package simulate
