// Package snippets runs the programs of docs/stand-ins.md, and those of the folder programs, against
// `feedscale emulate` as they stand, in Go, JavaScript, Python and Java. run-snippets.sh starts it.
package snippets
