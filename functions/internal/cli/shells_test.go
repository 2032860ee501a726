//go:build shells

package cli_test

import "testing"

// grammar is a program for Python, which takes a file of PowerShell by the grammar of
// github.com/airbus-cert/tree-sitter-powershell: PowerShell itself comes from no package registry.
const grammar = `
import sys, tree_sitter, tree_sitter_powershell
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
sys.exit(parser.parse(open(sys.argv[1], "rb").read()).root_node.has_error)`

// TestEachShellParsesItsCompletion needs the shells, and Python with the grammar: run it by `make shells`.
func TestEachShellParsesItsCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shell, tool string
		args        []string
	}{
		{"zsh", "zsh", []string{"-n"}},
		{"fish", "fish", []string{"--no-execute"}},
		{"powershell", "python", []string{"-c", grammar}},
	} {
		t.Run(c.shell, func(t *testing.T) {
			t.Parallel()
			parsesItsCompletion(t, c.shell, c.tool, c.args...)
		})
	}
}
