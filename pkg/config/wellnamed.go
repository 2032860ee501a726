package config

import "strings"

// wellNamed reports whether a text consists of 1 to longest ASCII letters, digits and the
// characters in others, and begins and ends with a letter or digit, which is the form of most kinds
// of names.
func wellNamed(text string, longest int, others string) bool {
	foreign := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(others, r) }
	return text != "" && len(text) <= longest && strings.Trim(text, others) == text && !strings.ContainsFunc(text, foreign)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
