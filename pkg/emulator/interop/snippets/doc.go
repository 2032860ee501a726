// Package snippets runs the programs of docs/stand-ins.md as they stand, against `feedscale
// emulate`, in Go, JavaScript, Python and Java; run-snippets.sh does.
package snippets
