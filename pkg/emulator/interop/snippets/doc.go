// Package snippets runs the programs of docs/stand-ins.md, and those in the folder programs,
// unchanged against `feedscale emulate`, in Go, JavaScript, Python and Java. run-snippets.sh starts
// it.
package snippets
