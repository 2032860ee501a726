package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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
