// Package boltstore is a state.Store in one local file, for a single process: `run`, `poll` and
// `demo` without an Azure account.
//
// It knows bbolt and the file system, and nothing of what a State means. Start with store.go (State
// and outbox) and history.go; open.go opens the file, and refuses one that is in use, damaged or
// not a state file.
//
// The package is internal to the program: its API may change in any release.
package boltstore
