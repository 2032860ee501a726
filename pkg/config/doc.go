// Package config reads what a user wrote, the FEEDSCALE_* settings and the processors file
// (docs/configure.md), into validated values, and reports everything that is wrong with them at
// once.
//
// It opens no file and no connection: the environment and the function that reads files come in
// with Input, and a connection is returned as a value, not as a client. It looks up only the rules of
// time zones, through package time. Of the decision it knows only the fields of scaling.Policy.
//
// Start with Read. processors.schema.json has the fields of the processors file, processor.go what
// becomes of them, rules.go what holds between them; settings.go has the settings.
//
// The package is internal to the program: its API may change in any release.
package config
