// Package functionshost is a stand-in for the Azure Functions host, for tests
// of a custom handler: it takes a staged function app (host.json, one folder
// with a function.json per function, the executable), starts the executable as
// the host would, sends it the payloads the host sends, and judges its answers
// as the host judges them.
//
// It follows the host at version 4. Where the host would hang, or log an error
// and go on without a function, the stand-in returns an error, because a test
// should see it. It fires no timer by itself: Timer does, so that a test has
// the ticks in its hand. Retry policies, bindings that read something besides
// the trigger, and route constraints are refused rather than imitated; what an
// output binding would have sent is reported, not sent.
//
// It knows nothing of feedscale. Start with host.go; app.go and function.go read
// the app, worker.go keeps its process, invoke.go and answer.go are the
// contract with the handler, front.go is what HTTP clients meet.
package functionshost
