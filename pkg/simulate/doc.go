// Package simulate replays what arrived at a change feed against a way of scaling its processor,
// with a model of the processor and of what acts on a decision. So a policy is judged on last
// week's changes instead of on production.
//
// It is pure: traces, policies and the seed come in as values, and the same values give the same
// Result, however many replays run at once. It reads no file and no clock. The decisions are those
// of package scaling. docs/tune.md says what the model assumes and what it leaves out.
//
// Start with [Run] in run.go. What arrives: trace.go, shapes.go and recorded.go. What processes it:
// workers.go, handler.go and leases.go. What decides and acts: scaler.go and keda.go. Many replays:
// compare.go. pkg/benchmark/policies builds on this package to judge the default policy. The API
// may change in any release.
package simulate
