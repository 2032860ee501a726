package actions

import (
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Kind is a way to act, as a program offers it. Each package of an action has its own; the list of
// them is all that a program needs for its help, for the validation of its flags, and to make one.
type Kind struct {
	Name    string // as in --action webhook
	Summary string // what it does, in a few words
	Flags   []Flag // that this kind alone has

	// New makes the action. It makes no request: an error is one of the options, and names the flag or
	// the setting.
	New func(Options) (Action, error)
}

// Flag is a flag of one Kind.
type Flag struct{ Name, Usage string }

// Options are what a program gives to every Kind.
type Options struct {
	Flag     func(name string) string               // the value of one of the Kind's flags; "" where it was not given
	Secret   string                                 // FEEDSCALE_WEBHOOK_SECRET; "" = none
	Identity func() (azcore.TokenCredential, error) // the identity of this process in Azure
	Stdout   io.Writer
	Log      *slog.Logger
}

// Kinds is what a program offers.
type Kinds []Kind

// Names are the names of the kinds, in their order.
func (k Kinds) Names() []string {
	names := make([]string, len(k))
	for i, kind := range k {
		names[i] = kind.Name
	}
	return names
}

// Find returns the kind of a name.
func (k Kinds) Find(name string) (Kind, bool) {
	i := slices.IndexFunc(k, func(kind Kind) bool { return kind.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return k[i], true
}

// Summary says of each kind what it does.
func (k Kinds) Summary() string {
	parts := make([]string, len(k))
	for i, kind := range k {
		parts[i] = kind.Name + " (" + kind.Summary + ")"
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " or " + parts[last]
}

// StdoutKind is the Kind of Stdout.
func StdoutKind() Kind {
	return Kind{Name: "stdout", Summary: "a line each", New: func(o Options) (Action, error) {
		return NewStdout(o.Stdout), nil
	}}
}
