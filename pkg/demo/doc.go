// Package demo is a small world to watch feedscale in: a stand-in Cosmos DB account under load,
// change feed processors whose replicas work the load off, a stand-in Service Bus namespace, and a
// consumer of scale events that starts and stops those replicas. Now and then the account splits a
// partition, and merges it again, as the service does when a container grows and shrinks; other
// faults come when they are asked for. Nothing outside the process is needed.
//
// The world knows nothing of how feedscale measures or decides. They meet in three places only, as
// in a real deployment: the account, which feedscale reads, the topic, which it writes to, and the
// settings that World.Environ gives it. No replica runs before an event asked for it.
//
// Start reading at Start in world.go, then service.go, which says what each service is like, and
// processors.yaml, the processors file that feedscale is run with. A replica is fleet.go; what it
// does with leases is in pkg/changefeedprocessor. Splits and merges are in reshape.go, all that can be
// broken is in faults.go.
//
// The package is internal to the program: its API may change in any release.
package demo
