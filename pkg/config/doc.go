// Package config turns what a user wrote, the FEEDSCALE_* settings and the
// processors file (DESIGN 5), into values that the rest of feedscale can rely
// on, and reports everything that is wrong with it in one go.
//
// It opens no file and no connection: the environment and the reading of files
// come in with Input, and what connects to Azure gets a parsed choice, not a
// client. The one thing it looks up by itself is a time zone's rules, through
// package time. It knows how replicas are decided only by the fields of
// scaling.Policy.
//
// Start with read.go, which is the way in. processor.go lists the fields of the
// processors file, settings.go the settings; tree.go, fields.go and mistakes.go
// are what both are read with.
package config
