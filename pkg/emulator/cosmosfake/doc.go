// Package cosmosfake is an in-process stand-in of one Azure Cosmos DB account (API for NoSQL). It
// listens on real sockets and speaks the real REST protocol, including its authentication, so that
// unmodified clients of any language can use it: databases, containers, documents, queries,
// partition key ranges that split and merge, and both kinds of change feed. Everything is held in
// memory. Tests, benchmarks and the demo use it; no production code may import it.
//
// It knows the service's documented behaviour, never a particular client. Where the service's
// behaviour is not known for certain, the assumption stands at the one constant or function that
// makes it.
//
// Start reading at Start, then call.handle in handle.go: there is one file per kind of request.
// Below them lie container (one container and its ranges) and partition (documents, LSNs and feeds
// of one range).
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package cosmosfake
