// Package functionshost is a stand-in for the Azure Functions host, for tests of a custom handler:
// it takes a staged function app (host.json, one folder with a function.json per function, the
// executable), starts the executable as the host would, fires its timers, serves its HTTP
// functions, judges its answers as the host judges them, and ends as the host ends.
//
// It follows the host at version 4.1037. Comments name the source of a rule: a file of
// github.com/Azure/azure-functions-host below src/WebJobs.Script, a file of
// github.com/Azure/azure-webjobs-sdk-extensions below src/WebJobs.Extensions/Extensions where it
// begins with Timers, or "seen on host 4.1037", which was built from its source and run with
// Azurite as its storage.
//
// What is not the host's: Start fails if the handler never answers, so that a test sees why.
// Without a Storage timers fire only by hand. Retry policies, bindings that read something besides
// the trigger, and route constraints are refused rather than imitated; what an output binding would
// have sent is reported, not sent. Where the storage goes away only a starting host and one that
// waits for a lock notice it.
//
// It knows nothing of feedscale. Start with host.go; app.go and function.go read the app, worker.go
// keeps its process, listener.go and storage.go fire its timers, receive.go takes from its queues,
// shutdown.go ends it, invoke.go and answer.go are the contract with the handler, front.go is what
// HTTP clients meet.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package functionshost
