// Package leasefake has the lease documents of change feed processors, each as its SDK writes it: for
// tests and benchmarks, which put them into a lease container in place of a processor that runs, and
// for the demo's processors. What happens to be in one lease is up to the caller; which fields it has,
// how its id is built, and how times and positions are written, is what each SDK does.
//
// It is written from what the SDKs do and not from what feedscale reads: it imports nothing of
// feedscale that reads leases, so that the two can contradict each other. What the account adds to
// every document (_etag, _ts and the like) it leaves to the account.
//
// Start reading at [Processor], whose methods are the formats: those of .NET in dotnet.go, where
// [DotNetLease] is for whoever reads leases too, of the legacy V2 library in v2.go, of Java in java.go
// and javastate.go. What all of them hold is in fields.go; lose.go loses a lease, or makes it one from elsewhere.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package leasefake
