package config

import "unique"

// Secret is a key or a connection string. Printed, logged or encoded, alone or inside another value, it
// never shows its text; only Reveal returns it. Two Secrets are equal if their texts are.
type Secret struct {
	// fmt prints unexported fields without calling String: of a handle it prints only a pointer.
	hidden unique.Handle[string]
}

// NewSecret returns a Secret with a text. The Secret of "" is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text, for the client that signs with it.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.hidden.Value()
}

// IsZero reports whether the text is "".
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns "(secret)", or "" for the zero Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "(secret)"
}

// MarshalText does not show the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
