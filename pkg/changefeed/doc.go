// Package changefeed is the domain of feedscale: the leases that change feed
// processors keep, the positions in them, the answers of the change feed, and
// the arithmetic that turns both into lag.
//
// It is pure: it does no I/O and reads no clock; bytes and times come in as
// values. It knows nothing of accounts, HTTP, replicas or storage. Start with
// lease.go (what a processor writes), identity.go (which leases are whose) and
// answer.go (what an answer of the feed means).
package changefeed
