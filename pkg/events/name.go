package events

// NameForm says in words what [IsName] allows.
const NameForm = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"

// maxName is the most characters of a name.
const maxName = 63

// IsName reports whether text can be the name of a processor or group (docs/configure.md, The processors
// file). Names are used in URLs, in keys of the state table and in message ids.
func IsName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && i > 0 && i < len(text)-1:
		default:
			return false
		}
	}
	return text != "" && len(text) <= maxName
}
