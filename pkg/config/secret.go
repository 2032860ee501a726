package config

import (
	"log/slog"
	"unique"
)

// Secret is a key or a connection string. However it is printed, logged or
// encoded, alone or inside another value, it does not show; only Reveal tells.
// Secrets are equal where what they hide is.
type Secret struct {
	// A handle, since fmt reaches into unexported fields without asking
	// String: it finds a pointer there.
	hidden unique.Handle[string]
}

const redacted = "(secret)"

// NewSecret hides a text. The secret of "" is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns what is hidden, for the client that signs with it.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.hidden.Value()
}

// IsZero tells whether nothing is hidden.
func (s Secret) IsZero() bool { return s == Secret{} }

// String never shows what is hidden.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString never shows what is hidden.
func (s Secret) GoString() string { return "config.Secret(" + s.String() + ")" }

// LogValue never shows what is hidden.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText never shows what is hidden.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
