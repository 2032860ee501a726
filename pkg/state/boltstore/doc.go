// Package boltstore keeps the state in one local file, for a single process:
// `run`, `poll` and `demo` without an Azure account.
//
// It knows bbolt and the file system, and nothing of what the State means.
// Start with store.go (the operations) and history.go (those of the history);
// open.go opens the file and refuses one that is in use, damaged or foreign.
package boltstore
