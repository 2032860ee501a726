package actions

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Kind describes an action to a program that offers it; each package of an action has one. From a list of
// Kinds a program makes its help, validates its flags, and makes an action.
type Kind struct {
	Name    string // as in --action webhook
	Summary string // what it does, in a few words
	Flags   []Flag // flags of this kind alone
	Caution string // a warning for the user, said once at the start; "" = none

	// New makes the action. It makes no request; an error is about the options, and names the flag
	// or the setting.
	New func(Options) (Action, error)

	// Rivals looks for what else sets the replicas of the object that target labels name, and changes
	// nothing. It makes no request if the labels name nothing that this kind acts on. Survey.Target is
	// there also with an error. nil = this kind cannot tell.
	Rivals func(ctx context.Context, target map[string]string) (Survey, error)
}

// Flag is a flag of one Kind.
type Flag struct{ Name, Usage string }

// Options are what a program gives to each Kind to make its action.
type Options struct {
	Flag     func(name string) string               // the value of one of the Kind's flags; "" if it was not given
	Secret   string                                 // FEEDSCALE_WEBHOOK_SECRET; "" = none
	Identity func() (azcore.TokenCredential, error) // the identity of this process in Azure
	Stdout   io.Writer
	Log      *slog.Logger
}

// Kinds are the kinds of action that a program offers, in the order of its help.
type Kinds []Kind

// Names returns the names of the kinds, in their order.
func (k Kinds) Names() []string {
	names := make([]string, len(k))
	for i, kind := range k {
		names[i] = kind.Name
	}
	return names
}

// Find returns the kind with one of the Names.
func (k Kinds) Find(name string) Kind { return k[slices.Index(k.Names(), name)] }

// Summary returns a phrase with the name and the summary of each kind.
func (k Kinds) Summary() string {
	parts := make([]string, len(k))
	for i, kind := range k {
		parts[i] = kind.Name + " (" + kind.Summary + ")"
	}
	return yamltree.OneOf(parts)
}

// StdoutKind returns the Kind of Stdout.
func StdoutKind() Kind {
	return Kind{Name: "stdout", Summary: "a line each", New: func(o Options) (Action, error) {
		return NewStdout(o.Stdout), nil
	}}
}

// Stdout is an Action for another program that reads the output: it writes one event per line, as it was
// published, without white space between JSON tokens.
type Stdout struct{ lines *events.Stdout }

// NewStdout returns an Action that writes lines to w, each in one Write.
func NewStdout(w io.Writer) Stdout { return Stdout{events.NewStdout(w)} }

// Target returns "standard output" for every event.
func (Stdout) Target(events.ScaleEvent) (string, error) { return "standard output", nil }

// Act writes the event.
func (s Stdout) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	body, err := e.Body()
	if err != nil {
		return false, err
	}
	return true, s.lines.Publish(ctx, body)
}
