// Package cli is the commands of feedscale, one file each: its flags, a call of the package that
// does the work, and a call of package console that prints the result. inputs.go has the flags and
// files that several commands share; print.go the commands that only print a text. Commands that
// need a stand-in or client-go are in functions/cmd/feedscale, since the deployed handler must not
// link them.
//
// Start with leases.go, and with package program for what surrounds a command.
//
// The package is internal to feedscale: its API may change in any release.
package cli
