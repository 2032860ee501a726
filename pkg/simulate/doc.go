// Package simulate replays what arrived at a change feed against a way of
// scaling its processor, with a model of the workers, so that thresholds are
// tuned on last week's changes instead of on production.
//
// It is pure: traces, policies and the seed come in as values, and the same
// values give the same Result. It reads no file and no clock, and knows nothing
// of state or events; the decisions are those of package scaling, not of a copy.
//
// Start with run.go. trace.go, generate.go and recorded.go say what arrives,
// workers.go who works it off, scaler.go and keda.go who decides.
package simulate
