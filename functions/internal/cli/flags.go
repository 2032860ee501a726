package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// addOutput adds the flag that chooses the form of what a command prints, the first of some by default.
func addOutput(c *cobra.Command, forms ...string) *string {
	value := c.Flags().StringP("output", "o", forms[0], "`form`: "+strings.Join(forms[:len(forms)-1], ", ")+" or "+forms[len(forms)-1])
	complete(c, "output", forms...)
	return value
}

// complete has shells offer the values of a flag.
func complete(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

// flagMistakes is what is wrong with the flags of a command, so that all of it is said at once.
type flagMistakes []string

func (m *flagMistakes) add(format string, args ...any) {
	*m = append(*m, fmt.Sprintf(format, args...))
}

// choice adds a flag whose value is none of those allowed.
func (m *flagMistakes) choice(name, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		m.add("--%s is %q; allowed are %s", name, value, listed(allowed))
	}
}

// eitherURL adds that the state is read from two places.
func (m *flagMistakes) eitherURL(url, file string) {
	if url != "" && file != "" {
		m.add("--config: is of no use with --url; leave one of the two out")
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

// refuse prints the mistakes of a command, and returns the Failure for them; nil where there are none.
func (m flagMistakes) refuse(w io.Writer, command string) error {
	for _, mistake := range m {
		fmt.Fprintf(w, "feedscale %s: %s\n", command, mistake)
	}
	if len(m) > 0 {
		return Usage(nil)
	}
	return nil
}

// kind is a type of flag values: what they are called, how they are read and shown.
type kind[T any] struct {
	name  string
	parse func(text string) (T, error)
	shown func(value T) string
}

var (
	durations    = kind[time.Duration]{"durations, such as 90s or 1h30m,", time.ParseDuration, console.Brief}
	wholeNumbers = kind[int]{"whole numbers", strconv.Atoi, strconv.Itoa}
	seeds        = kind[uint64]{
		"whole numbers", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) },
		func(n uint64) string { return strconv.FormatUint(n, 10) },
	}
	rates = kind[float64]{
		"transactions per second", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) },
		func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) },
	}
)

// boundedVar adds a flag whose values lie between two bounds, and whose default is what value holds.
func boundedVar[T cmp.Ordered](f *pflag.FlagSet, m *flagMistakes, value *T, name string, k kind[T], low, high T, usage string) {
	f.Var(&boundedValue[T]{k, value, m, name, low, high}, name, usage)
}

// boundedValue is a pflag.Value. Set does not fail, so that a mistake is said with all others.
type boundedValue[T cmp.Ordered] struct {
	kind[T]
	value     *T
	mistakes  *flagMistakes
	flag      string
	low, high T
}

func (b *boundedValue[T]) String() string { return b.shown(*b.value) }
func (b *boundedValue[T]) Type() string   { return b.name }

func (b *boundedValue[T]) Set(text string) error {
	value, err := b.parse(text)
	if err != nil || !(value >= b.low && value <= b.high) {
		b.mistakes.add("--%s is %q; allowed are %s from %s to %s", b.flag, text, b.name, b.shown(b.low), b.shown(b.high))
		return nil
	}
	*b.value = value
	return nil
}

// removedFlags adds flags of an earlier release that help does not list. They are refused with a
// sentence that says what there is in their place. Those that took no value need a NoOptDefVal.
func removedFlags(f *pflag.FlagSet, m *flagMistakes, instead string, names ...string) {
	for _, name := range names {
		f.Var(removedValue{m, name, instead}, name, "")
		f.Lookup(name).Hidden = true
	}
}

type removedValue struct {
	mistakes      *flagMistakes
	flag, instead string
}

func (r removedValue) String() string { return "" }
func (r removedValue) Type() string   { return "removed" }

func (r removedValue) Set(string) error {
	r.mistakes.add("--%s is removed: %s", r.flag, r.instead)
	return nil
}
