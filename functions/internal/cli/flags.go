package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// flags are those of a command, and what is wrong with their values, so that all of it is said at once.
type flags struct {
	*pflag.FlagSet
	command *cobra.Command
	wrong   []error
}

func flagsOf(c *cobra.Command) *flags { return &flags{FlagSet: c.Flags(), command: c} }

// mistake adds one, where it holds.
func (f *flags) mistake(holds bool, format string, args ...any) {
	if holds {
		f.wrong = append(f.wrong, fmt.Errorf(format, args...))
	}
}

// mistakes is the Failure for all of them; nil where there are none.
func (f *flags) mistakes() error {
	if err := errors.Join(f.wrong...); err != nil {
		return Usage(err)
	}
	return nil
}

// output adds the flag that chooses the form of what a command prints, the first of some by default.
func (f *flags) output(value *string, forms ...string) {
	*value = forms[0]
	f.choice(value, "output", "o", "format", strings.Join(forms[:len(forms)-1], ", ")+" or "+forms[len(forms)-1], forms...)
}

// choice adds a flag that takes one of some words. kind is what help calls its value.
func (f *flags) choice(at *string, name, short, kind, usage string, allowed ...string) {
	f.VarP(value{f, name, kind, func() string { return *at }, func(text string) string {
		if !slices.Contains(allowed, text) {
			return listed(allowed)
		}
		*at = text
		return ""
	}}, name, short, usage)
	f.complete(name, allowed...)
}

// complete has shells offer the values of a flag.
func (f *flags) complete(name string, values ...string) {
	if err := f.command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// text adds a flag of any text. kind is what help calls its value.
func (f *flags) text(at *string, name, kind, usage string) {
	f.Var(value{f, name, kind, func() string { return *at }, func(text string) string {
		*at = text
		return ""
	}}, name, usage)
}

// file adds the flag that names the processors file.
func (f *flags) file(at *string) {
	f.text(at, "config", "path", "the processors file; setting FEEDSCALE_CONFIG")
}

// url adds the flag that names a feedscale elsewhere.
func (f *flags) url(at *string) {
	f.text(at, "url", "address", "the feedscale whose HTTP API is asked, such as https://APP.azurewebsites.net; setting "+
		"FEEDSCALE_URL, with the function key in FEEDSCALE_API_KEY. Without it the state in FEEDSCALE_STATE is read")
}

// value is a pflag.Value whose mistakes are said with all others. set returns what is allowed, "" where it
// took the text.
type value struct {
	flags      *flags
	name, kind string
	shown      func() string
	set        func(text string) (allowed string)
}

func (v value) String() string { return v.shown() }
func (v value) Type() string   { return v.kind }

// Set does not fail.
func (v value) Set(text string) error {
	allowed := v.set(text)
	v.flags.mistake(allowed != "", "--%s is %q; allowed are %s", v.name, text, allowed)
	return nil
}

// kind is a type of numbers: what help calls one, what mistakes call all, how they are read and shown.
type kind[T any] struct {
	one, all string
	parse    func(text string) (T, error)
	shown    func(value T) string
}

var (
	durations    = kind[time.Duration]{"duration", "durations, such as 90s or 1h30m,", time.ParseDuration, console.Brief}
	wholeNumbers = kind[int]{"number", "whole numbers", strconv.Atoi, strconv.Itoa}
	seeds        = kind[uint64]{
		"number", "whole numbers", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) },
		func(n uint64) string { return strconv.FormatUint(n, 10) },
	}
	rates = kind[float64]{
		"number", "transactions per second", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) },
		func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) },
	}
)

// number adds a flag whose values lie between two bounds, and whose default is what at holds.
func number[T cmp.Ordered](f *flags, at *T, name string, k kind[T], low, high T, usage string) {
	f.Var(value{f, name, k.one, func() string { return k.shown(*at) }, func(text string) string {
		n, err := k.parse(text)
		if err != nil || !(n >= low && n <= high) {
			return fmt.Sprintf("%s from %s to %s", k.all, k.shown(low), k.shown(high))
		}
		*at = n
		return ""
	}}, name, usage)
}

// removed adds flags of an earlier release that help does not list. They are refused with a sentence that
// says what there is in their place. Those that took no value need a NoOptDefVal.
func (f *flags) removed(instead string, names ...string) {
	for _, name := range names {
		f.Var(value{f, name, "removed", func() string { return "" }, func(string) string {
			f.mistake(true, "--%s is removed: %s", name, instead)
			return ""
		}}, name, "")
		f.Lookup(name).Hidden = true
	}
}

// listed writes a list as a sentence has it: a, b and c.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
