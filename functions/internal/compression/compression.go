// Package compression answers with gzip if a caller takes that, and with 304 if the caller has the
// answer already. The functions of this app share it. Start with [Send].
//
// The package is internal to the program: its API may change in any release.
package compression

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// Send answers with a body, or with 304 if the caller has it already. The ETag is that of tagged: the body, or the part of
// it whose change makes another answer. The header Content-Type is set by then.
//
// No proxy may keep the answer (private), since it was given for a key. A browser may, and asks each time
// whether it is still right (no-cache), since a scaler that reads a kept answer acts on an old number.
func Send(w http.ResponseWriter, r *http.Request, body, tagged []byte) {
	header, sum := w.Header(), sha256.Sum256(tagged)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
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
		return
	}
	to, end := Answer(w, r)
	_, _ = to.Write(body) // a caller that went away has no use for an error
	_ = end()
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
