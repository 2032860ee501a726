// Package demo is a small world in which to watch feedscale: a stand-in Cosmos DB account under
// load, change feed processors whose replicas process the load, a stand-in Service Bus namespace,
// and a consumer of scale events that starts and stops the replicas. From time to time the account
// splits a partition and merges it again, as the service does when a container grows and shrinks.
// Other faults occur on request. Nothing outside the process is needed.
//
// The world does not import how feedscale measures or decides. They meet in three places, as in a
// real deployment: the account that feedscale reads, the topic that it writes to, and the settings
// from World.Environ. Replicas start only when an event asks for them.
//
// Start reading at Start in world.go. service.go describes each service, and processors.yaml is the
// processors file for feedscale. fleet.go has the replicas; they use pkg/changefeedprocessor.
// reshape.go has splits and merges, faults.go all other faults.
//
// The package is internal to the program: its API may change in any release.
package demo
