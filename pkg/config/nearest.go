package config

import "strings"

// unknown returns the sentence of a mistake about an unknown name. It suggests the nearest known
// one or, where none is near, lists them all.
func unknown(what, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "is an unknown " + what + "; did you mean " + near + "?"
	}
	return "is an unknown " + what + "; allowed are " + oneOf(known)
}

// Nearest returns the known name with the smallest edit distance, "" where that is more than a
// third of the known name's length.
func Nearest(name string, known []string) string {
	best, distance := "", 0
	for _, candidate := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= len(candidate)/3 && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance in bytes. Where a is more than twice as long as b,
// which is never near, it returns the length of a without computing the distance.
func editDistance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
