// Package config reads the FEEDSCALE_* settings and the processors file (docs/configure.md) into
// validated values, and reports everything that is wrong with them at once.
//
// It opens no file and no connection: the environment and the function that reads files come in
// with Input. It looks up only time zones, through package time. Of the decision it knows only
// scaling.Policy.
//
// Start with Read. processors.schema.json has the fields of the processors file, processor.go what
// becomes of them, rules.go what holds between them; settings.go has the settings.
//
// The package is internal to the program: its API may change in any release.
package config
