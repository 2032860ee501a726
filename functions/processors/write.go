package processors

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/problem"
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
	h.send(w, r, encoded, encoded)
}

// writeTagged answers with a body as JSON, of which only what is tagged says whether it is new.
func (h *Handler) writeTagged(w http.ResponseWriter, r *http.Request, body, tagged any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		h.unencodable(w, r, err)
		return
	}
	content, err := json.Marshal(tagged)
	if err != nil {
		h.unencodable(w, r, err)
		return
	}
	h.send(w, r, encoded, content)
}

// send answers with JSON, compressed where the caller takes that, or with 304 where the caller has what is
// tagged already, so that a page that asks every few seconds gets only what is new.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, encoded, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
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
	var err error
	if len(encoded) < compressFrom || !acceptsGzip(r) {
		_, err = w.Write(encoded)
	} else {
		header.Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		if _, err = compressed.Write(encoded); err == nil {
			err = compressed.Close()
		}
	}
	if err != nil {
		h.Log.Debug("a caller went away before its answer", "error", err.Error())
	}
}

func (h *Handler) unencodable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("an answer cannot be encoded", "path", r.URL.Path, "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error())
}

// acceptsGzip reports whether the caller names gzip, and does not refuse it with a weight of zero
// (RFC 9110, 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
