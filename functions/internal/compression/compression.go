// Package compression answers with gzip where a caller takes that, and with 304 where the caller has the
// answer already. The functions of this app share it. Start with [Send].
//
// The package is internal to the program: its API may change in any release.
package compression

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strings"
)

// from is the length from which on an answer is worth compressing, in bytes.
const from = 1024

// Tag makes the ETag of what is written to it.
type Tag struct{ sum hash.Hash }

// Write never fails.
func (t *Tag) Write(text []byte) (int, error) {
	if t.sum == nil {
		t.sum = sha256.New()
	}
	return t.sum.Write(text)
}

// String returns the ETag.
func (t *Tag) String() string { return `"` + hex.EncodeToString(t.sum.Sum(nil)[:12]) + `"` }

// TagOf returns the ETag of a text.
func TagOf(text []byte) string {
	var t Tag
	_, _ = t.Write(text)
	return t.String()
}

// Send answers with what write writes, so many bytes, or with 304 where the caller has what the tag names.
// An error is that the caller went away. The header Content-Type is the caller's to set.
//
// No proxy may keep the answer (private), since it was given for a key. A browser may, and asks each time
// whether it is still right (no-cache), since a scaler that reads a kept answer acts on an old number.
func Send(w http.ResponseWriter, r *http.Request, tag string, length int, write func(io.Writer) error) error {
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
	if length < from {
		return write(w)
	}
	to, end := Answer(w, r)
	return cmp.Or(write(to), end())
}

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
