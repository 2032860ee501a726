// Package docs has the pages that the command-line tool explains words from, so that whoever has the
// program alone has them, too. It knows nothing else; start with the pages.
//
// The package is internal to the program: its API may change in any release.
package docs

import (
	_ "embed" // for the pages
	"regexp"
)

// Configure has a table of the settings: name, default, what is allowed, and meaning.
//
//go:embed configure.md
var Configure string

// Status says what each finding means, in a section that has its code as heading, and what to do.
//
//go:embed status.md
var Status string

// Glossary has the terms, in tables of term, meaning and code.
//
//go:embed glossary.md
var Glossary string

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)

// Plain is a text of a page with the words of its links alone.
func Plain(text string) string { return link.ReplaceAllString(text, "$1") }
