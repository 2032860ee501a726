// Package simulate replays what arrived at a change feed against a way of scaling its processor,
// with a model of the processor and of what acts on a decision. So a policy is judged on last week's
// changes instead of on production.
//
// It is pure: traces, policies and the seed come in as values, and the same values give the same
// Result, however many replays run at once. It reads no file and no clock. The decisions are those of
// package scaling, not of a copy. docs/tune.md says what the model believes and what it leaves out.
//
// Start with Run in run.go. What arrives: trace.go, shapes.go and recorded.go. Who processes it:
// workers.go, handler.go and leases.go. Who decides and who acts: poll.go, scaler.go, keda.go. Many
// replays: compare.go. The laboratory, in which the default policy is judged, is built on this
// package: pkg/benchmark/policies. The API may change in any release.
package simulate
