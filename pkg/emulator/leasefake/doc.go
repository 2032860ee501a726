// Package leasefake makes the lease documents of change feed processors, each as its SDK writes it.
// Tests and benchmarks put them into a lease container instead of running a processor; the demo's
// processors use them as well. The caller chooses the values of a lease. Its fields, its id, and
// the form of times and positions follow the SDK.
//
// It is written from what the SDKs do and not from what feedscale reads: it imports nothing of
// feedscale that reads leases, so that the two can contradict each other. What the account adds to
// every document (_etag, _ts and the like) it leaves to the account.
//
// Start reading at [Processor], whose methods are the formats: those of .NET in dotnet.go, where
// [DotNetLease] is for whoever reads leases too, of the legacy V2 library in v2.go, of Java in
// java.go and javastate.go. What all of them hold is in fields.go; lose.go loses a lease, or makes
// it one from elsewhere.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package leasefake
