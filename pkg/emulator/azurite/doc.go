// Package azurite runs Azurite, Microsoft's emulator of Azure Storage, for
// tests: its table service only, in memory, on a free loopback port.
//
// It knows how to install Azurite from npm and how to make sure that it is gone
// when the program is; it knows nothing of tables. Node.js is needed. Start
// with server.go (running it); install.go has the installation, and npm/ the
// pinned versions.
package azurite
