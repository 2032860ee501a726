package config

import (
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake = yamltree.Mistake

// Mistakes is everything that is wrong with a configuration: first the settings, then the document
// in its order. No mistake contains a secret.
type Mistakes = yamltree.Mistakes

// oneOf joins names for a sentence: "a, b or c".
func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
