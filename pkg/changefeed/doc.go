// Package changefeed is the domain of feedscale: the leases that change feed processors keep, the
// positions in them, the answers of the change feed, and the arithmetic that turns both into lag.
// The rules are in docs/lag.md, the terms in docs/glossary.md.
//
// It is pure: it does no I/O and reads no clock; bytes and times come in as values. It knows
// nothing of accounts, HTTP clients, replicas or storage. Start with lease.go (what a processor
// writes), identity.go and select.go (which leases belong to which processor), answer.go (what an
// answer of the feed means) and shares.go (what that counts for a lease).
//
// The package is internal to the program: its API may change in any release.
package changefeed
