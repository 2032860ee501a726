package processors

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/functions/internal/compression"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/report"
)

// write answers with a body as JSON.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		h.unencodable(w, r, err)
		return
	}
	sum := sha256.Sum256(text)
	h.send(w, r, compression.TagOf(sum[:]), len(text), func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// writeList answers with a list, an entry at a time. The time of the answer does not change its ETag.
func (h *Handler) writeList(w http.ResponseWriter, r *http.Request, all report.List) {
	timeless := sha256.New()
	if err := report.WriteObject(timeless, all.Fields()[1:]); err != nil {
		h.unencodable(w, r, err)
		return
	}
	tag := compression.TagOf(timeless.Sum(nil))
	h.send(w, r, tag, math.MaxInt, func(to io.Writer) error { return report.WriteObject(to, all.Fields()) })
}

// summary is an encoded report.List without its time.
type summary struct {
	text []byte
	tag  string
}

func encodeSummary(all report.List) (*summary, error) {
	var text bytes.Buffer
	err := report.WriteObject(&text, all.Fields()[1:])
	sum := sha256.Sum256(text.Bytes())
	return &summary{text.Bytes(), compression.TagOf(sum[:])}, err
}

// writeSummary answers with a summary as of now.
func (h *Handler) writeSummary(w http.ResponseWriter, r *http.Request, s *summary) {
	h.send(w, r, s.tag, len(s.text), func(to io.Writer) error {
		now, _ := h.Now().UTC().Truncate(time.Millisecond).MarshalJSON() // of a year that has four digits
		if _, err := to.Write(append(append([]byte(`{"time":`), now...), ',')); err != nil {
			return err
		}
		_, err := to.Write(s.text[1:])
		return err
	})
}

// send answers with JSON, so many bytes.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, tag string, length int, write func(io.Writer) error) {
	w.Header().Set("Content-Type", "application/json")
	if err := compression.Send(w, r, tag, length, write); err != nil {
		h.Log.Debug("a caller went away before its answer", "error", err.Error())
	}
}

func (h *Handler) unencodable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("an answer cannot be encoded", "path", r.URL.Path, "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error())
}
