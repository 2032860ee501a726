package config

import "strings"

// wellNamed tells whether a text is up to longest letters and digits of ASCII
// and others, a letter or digit first and last. Names of most kinds are like that.
func wellNamed(text string, longest int, others string) bool {
	foreign := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(others, r) }
	return text != "" && len(text) <= longest && strings.Trim(text, others) == text && !strings.ContainsFunc(text, foreign)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
