// Package azurite runs Azurite, Microsoft's emulator of Azure Storage, for
// tests: its table service only, in memory, on a free loopback port.
//
// It makes sure that Azurite is installed, and that it is gone when the program
// is; it knows nothing of tables. Node.js is needed. Start with server.go
// (running it); npm/ has the pinned versions.
//
// The package is internal to the program: its API may change in any release.
package azurite
