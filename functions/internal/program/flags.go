package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Flags are a command and its flags. They collect mistakes, so that all are reported at once.
type Flags struct {
	*cobra.Command
	*pflag.FlagSet
	checks []func(args []string)
	wrong  []error
}

// Check adds a look for mistakes in arguments, and across flags.
func (f *Flags) Check(look func(args []string)) { f.checks = append(f.checks, look) }

// Run has the command do its work if there is no mistake.
func (f *Flags) Run(work func(ctx context.Context, args []string) error) {
	f.RunE = func(c *cobra.Command, args []string) error {
		if f.Use == f.Command.Name() && len(args) > 0 {
			f.Wrong(fmt.Errorf("unexpected argument %q", args[0]))
		}
		for _, look := range f.checks {
			look(args)
		}
		if err := f.Mistakes(); err != nil {
			return err
		}
		return work(c.Context(), args)
	}
}

// Wrong adds errors; nil is none.
func (f *Flags) Wrong(errs ...error) { f.wrong = append(f.wrong, errs...) }

// Mistake adds an error if a condition holds.
func (f *Flags) Mistake(holds bool, format string, args ...any) {
	if holds {
		f.Wrong(fmt.Errorf(format, args...))
	}
}

// Mistakes is the Failure of all mistakes; nil if there are none.
func (f *Flags) Mistakes() error {
	if err := errors.Join(f.wrong...); err != nil {
		return Usage(err)
	}
	return nil
}

// Output adds the flag for the form of the output. The first form is the default.
func (f *Flags) Output(value *string, forms ...string) {
	*value = forms[0]
	f.Choice(value, "output", "o", "format", yamltree.OneOf(forms), forms...)
}

// Choice adds a flag that takes one of some words. Help calls its value kind.
func (f *Flags) Choice(at *string, name, short, kind, usage string, allowed ...string) {
	f.Add(name, short, kind, usage, *at, func(text string) string {
		if !slices.Contains(allowed, text) {
			return yamltree.AllOf(allowed)
		}
		*at = text
		return ""
	})
	f.Complete(name, allowed...)
}

// Complete has shells offer values of a flag.
func (f *Flags) Complete(name string, values ...string) {
	if err := f.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// CompleteArguments has shells offer words as arguments, each once.
func (f *Flags) CompleteArguments(words func() []string) {
	f.ValidArgsFunction = func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(words(), func(word string) bool { return slices.Contains(given, word) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

// Text adds a flag of any text. Help calls its value kind.
func (f *Flags) Text(at *string, name, kind, usage string) {
	f.Add(name, "", kind, usage, *at, func(text string) string {
		*at = text
		return ""
	})
}

// Removed adds hidden flags of an earlier release. Their mistake says what replaces them. A flag
// that took no value needs a NoOptDefVal.
func (f *Flags) Removed(instead string, names ...string) {
	for _, name := range names {
		f.Add(name, "", "", "", "", func(string) string {
			f.Mistake(true, "--%s is removed: %s", name, instead)
			return ""
		})
		f.Lookup(name).Hidden = true
	}
}

// Add adds a flag. Help calls its value kind, and shows a default unless it is "". set takes a value
// and returns ""; it refuses one by returning what is allowed.
func (f *Flags) Add(name, short, kind, usage, standard string, set func(text string) (allowed string)) {
	f.VarP(value{f, name, kind, standard, set}, name, short, usage)
}

type value struct {
	flags                *Flags
	name, kind, standard string
	set                  func(text string) (allowed string)
}

func (v value) String() string { return v.standard }
func (v value) Type() string   { return v.kind }

// Set does not fail: a failure would hide the mistakes of later flags.
func (v value) Set(text string) error {
	allowed := v.set(text)
	v.flags.Mistake(allowed != "", "--%s is %q; allowed are %s", v.name, text, allowed)
	return nil
}

// Kind is a type of numbers.
type Kind[T any] struct {
	one, all string // names of a value, in help, and of all values, in mistakes
	parse    func(text string) (T, error)
	shown    func(value T) string
}

// The kinds of numbers.
var (
	Durations    = Kind[time.Duration]{"duration", "durations, such as 90s or 1h30m,", time.ParseDuration, console.Brief}
	WholeNumbers = Kind[int]{"number", "whole numbers", strconv.Atoi, strconv.Itoa}
	Seeds        = Kind[uint64]{
		"number", "whole numbers", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) },
		func(n uint64) string { return strconv.FormatUint(n, 10) },
	}
	Rates = Kind[float64]{
		"number", "transactions per second", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) },
		func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) },
	}
)

// Number adds a flag for a number from low to high. Its default is the value that at points to.
func Number[T cmp.Ordered](f *Flags, at *T, name string, k Kind[T], low, high T, usage string) {
	f.Add(name, "", k.one, usage, k.shown(*at), func(text string) string {
		n, err := k.parse(text)
		if err != nil || !(n >= low && n <= high) {
			return fmt.Sprintf("%s from %s to %s", k.all, k.shown(low), k.shown(high))
		}
		*at = n
		return ""
	})
}
