package config

import (
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// unknown returns the sentence of a mistake about an unknown name. It suggests the nearest known one, or
// lists all of them if none is near.
func unknown(what, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "is an unknown " + what + "; did you mean " + near + "?"
	}
	return "is an unknown " + what + "; allowed are " + yamltree.OneOf(known)
}

// Nearest returns the known name that differs least; "" if more than a third of its characters differ.
func Nearest(name string, known []string) string {
	best, distance := "", 0
	for _, candidate := range known {
		d := changefeed.NameDistance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= len(candidate)/3 && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	return best
}
