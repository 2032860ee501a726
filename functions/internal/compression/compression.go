// Package compression answers with gzip where a caller takes that. The functions of this app share it.
//
// The package is internal to the program: its API may change in any release.
package compression

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// Answer returns what compresses an answer where the caller takes that, and what ends it. Speed counts, since
// each answer is read once.
func Answer(w http.ResponseWriter, r *http.Request) (to io.Writer, end func() error) {
	if !Accepted(r) {
		return w, func() error { return nil }
	}
	w.Header().Set("Content-Encoding", "gzip")
	compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that exists
	return compressed, compressed.Close
}

// Accepted reports whether the caller names gzip, and does not refuse it with a weight of zero
// (RFC 9110, 12.5.3).
func Accepted(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
