// Package compression answers with gzip if a caller takes that, and with 304 if the caller has the
// answer already. The functions of this app share it. Start with [Send].
//
// The package is internal to the program: its API may change in any release.
package compression

import (
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// TagOf returns the ETag of a text whose SHA-256 is sum.
func TagOf(sum []byte) string { return `"` + hex.EncodeToString(sum[:12]) + `"` }

// Send answers with what write writes, or with 304 if the caller has what the tag names. The header Content-Type is
// set by then. An error says that the caller went away.
//
// No proxy may keep the answer (private), since it was given for a key. A browser may, and asks each time
// whether it is still right (no-cache), since a scaler that reads a kept answer acts on an old number.
func Send(w http.ResponseWriter, r *http.Request, tag string, write func(io.Writer) error) error {
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, no-cache")
	if r.URL.Query().Has("code") {
		header.Set("Cache-Control", "no-store") // a browser keeps the address, and the key in it, with the answer
	}
	header.Set("Vary", "Accept-Encoding")
	header.Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		header.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	to, end := Answer(w, r)
	return cmp.Or(write(to), end())
}

// Answer returns what compresses an answer if the caller takes that, and what ends it. Speed counts, since
// each answer is read once.
func Answer(w http.ResponseWriter, r *http.Request) (to io.Writer, end func() error) {
	if !gzipTaken.MatchString(strings.ReplaceAll(r.Header.Get("Accept-Encoding"), " ", "")) {
		return w, func() error { return nil }
	}
	w.Header().Set("Content-Encoding", "gzip")
	compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that exists
	return compressed, compressed.Close
}

// gzipTaken matches an Accept-Encoding without blanks that names gzip, and does not refuse it with a
// weight of zero (RFC 9110, 12.5.3).
var gzipTaken = regexp.MustCompile(`(?i)(^|,)gzip(;q=[0.]*[1-9][^,]*)?(,|$)`)
