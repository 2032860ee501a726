package config

import "strings"

// unknown says that a name is not known, and which known one was probably
// meant; where none is near, it lists them all.
func unknown(what, name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "is an unknown " + what + "; did you mean " + near + "?"
	}
	return "is an unknown " + what + "; allowed are " + oneOf(known)
}

// nearest returns the known name with the smallest edit distance, "" where
// even that one differs in more than a third of its letters.
func nearest(name string, known []string) string {
	best, distance := "", 0
	for _, candidate := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= len(candidate)/3 && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is Levenshtein's, in bytes. Names that differ in length by more
// than a known name has letters are not worth the work.
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
