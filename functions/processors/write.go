package processors

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/compression"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
)

// compressFrom is the length from which on an answer is worth compressing, in bytes.
const compressFrom = 1024

// write answers with a body as JSON.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		h.unencodable(w, r, err)
		return
	}
	h.send(w, r, tagOf(encoded), encoded)
}

// list is an encoded report.List, but for its time.
type list struct {
	text []byte // after the time
	tag  string
}

// timeless is what an encoded list begins with that has no time.
const timeless = `{"time":"0001-01-01T00:00:00Z"`

// encode encodes a list without its time, which says nothing about what is new.
func encode(all report.List) (*list, error) {
	all.Time = time.Time{}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return &list{text[len(timeless):], tagOf(text)}, nil
}

// sendList answers with a list of now.
func (h *Handler) sendList(w http.ResponseWriter, r *http.Request, l *list) {
	now, _ := h.Now().UTC().Truncate(time.Millisecond).MarshalJSON() // of a year that has four digits
	h.send(w, r, l.tag, append([]byte(`{"time":`), now...), l.text)
}

// send answers with parts of JSON, compressed where the caller takes that, or with 304 where the caller has
// what the tag says, so that a page that asks every few seconds gets only what is new.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, tag string, parts ...[]byte) {
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-store") // a scaler that reads a kept answer acts on an old number
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	to, end := io.Writer(w), func() error { return nil }
	if len(parts[len(parts)-1]) >= compressFrom {
		to, end = compression.Answer(w, r)
	}
	var err error
	for _, part := range parts {
		if err == nil {
			_, err = to.Write(part)
		}
	}
	if err = cmp.Or(err, end()); err != nil {
		h.Log.Debug("a caller went away before its answer", "error", err.Error())
	}
}

// tagOf is the ETag of a text.
func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

func (h *Handler) unencodable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("an answer cannot be encoded", "path", r.URL.Path, "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error())
}
