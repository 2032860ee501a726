package events

import "regexp"

// NameForm says in words what [IsName] allows.
const NameForm = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsName reports whether text can be the name of a processor or group (docs/configure.md, The processors
// file). Names are used in URLs, in keys of the state table and in message ids.
func IsName(text string) bool { return nameForm.MatchString(text) }
