// Package simulate replays what arrived at a change feed against a way of scaling its processor, with
// a model of the processor and of what acts on a decision, so that a policy is judged and tuned on
// last week's changes instead of on production.
//
// It is pure: traces, policies and the seed come in as values, and the same values give the same
// Result, however many replays run at once. It reads no file and no clock, and knows nothing of state
// or events; the decisions are those of package scaling, not of a copy. docs/tune.md says what the
// model believes and what it leaves out.
//
// Start with Run in run.go. What arrives: trace.go, generate.go with shapes.go, skewed.go and
// profiles.go, and recorded.go. Who processes it: workers.go, handler.go, leases.go,
// and throughput.go, of which request units. Who decides and
// who acts: poll.go, scaler.go, acting.go, keda.go. What it is measured by: bound.go, best.go. Many
// replays: compare.go, matrix.go.
package simulate
