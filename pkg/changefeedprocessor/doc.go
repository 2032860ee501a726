// Package changefeedprocessor is a change feed processor for Azure Cosmos DB. It is the library that
// .NET and Java have, for Go: each host takes its share of the leases in a lease container, reads the
// changes of their partitions, calls a handler, and checkpoints. Hosts of this package, of .NET's SDK,
// of Java's SDK and Azure Functions triggers can share one lease container.
//
//	client, err := azcosmos.NewClient(endpoint, credential, changefeedprocessor.ClientOptions(nil))
//	p, err := changefeedprocessor.New(
//		changefeedprocessor.Container{Client: client, Database: "shop", ID: "orders"},
//		changefeedprocessor.Container{Client: client, Database: "shop", ID: "leases"},
//		changefeedprocessor.Options{Name: "projection", Instance: host, Handle: handle})
//	err = p.Run(ctx)
//
// Every change is delivered at least once, and the changes of one partition key value in their order.
// The zero value of an option is .NET's default. docs/processor.md has the guarantees, the tuning and
// the differences from .NET and Java.
//
// The API is stable: a change that breaks it is in CHANGELOG.md. The package uses azcore, azcosmos and
// pkg/changefeed, and knows nothing else of feedscale.
//
// Start reading at [Processor.Run] in processor.go. A lease that this host owns, and what
// becomes of it in a split or merge, is partition.go; policy.go is what azcosmos lacks. The documents of
// leases, their successors and the rule by which hosts share them are pkg/changefeed's.
package changefeedprocessor
