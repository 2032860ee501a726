package processors

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"

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
	h.send(w, r, compression.TagOf(sum[:]), func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// tagOf is the ETag of a list, which its time does not change.
func tagOf(all report.List) (string, error) {
	timeless := sha256.New()
	err := report.WriteObject(timeless, all.Fields()[1:])
	return compression.TagOf(timeless.Sum(nil)), err
}

// writeList answers with a list, an entry at a time.
func (h *Handler) writeList(w http.ResponseWriter, r *http.Request, tag string, all report.List) {
	h.send(w, r, tag, func(to io.Writer) error { return report.WriteObject(to, all.Fields()) })
}

// send answers with JSON.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, tag string, write func(io.Writer) error) {
	w.Header().Set("Content-Type", "application/json")
	if err := compression.Send(w, r, tag, write); err != nil {
		h.Log.Debug("a caller went away before its answer", "error", err.Error())
	}
}

func (h *Handler) unencodable(w http.ResponseWriter, r *http.Request, err error) {
	h.Log.Error("an answer cannot be encoded", "path", r.URL.Path, "error", err.Error())
	problem.Write(w, r, h.Log, http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error())
}
