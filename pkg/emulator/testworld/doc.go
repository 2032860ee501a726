// Package testworld is the Azure that tests of several packages meet: a stand-in account with a
// database and a lease container, where a test asks for it a stand-in namespace, the documents and
// leases in them, a clock that only the test moves, and the waiting for what other goroutines or
// processes do, and the files that a text is held to. Tests import it, and nothing else does.
//
// It starts the stand-ins and writes leases through leasefake; what a test holds its subject to
// stays in the test. Start reading at [New], and at [NewShop] for a world with a processor in it.
//
// The package is internal to the program: its API may change in any release.
package testworld
