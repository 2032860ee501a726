// Package docs has the pages that the command-line tool explains words from, so that whoever has the
// program alone has them, too. It knows nothing else; start with the pages.
//
// The package is internal to the program: its API may change in any release.
package docs

import _ "embed"

// Status says what each finding means, in a section that has its code as heading, and what to do.
//
//go:embed status.md
var Status string

// Glossary has the terms, in tables of term, meaning and code.
//
//go:embed glossary.md
var Glossary string
