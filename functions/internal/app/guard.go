package app

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/pkg/config"
)

// healthPath answers probes, which have no key. It says nothing but that HTTP is answered.
const healthPath = "/healthz"

// Where a Functions host looks for its key, so that a caller need not know who answers
// (https://learn.microsoft.com/azure/azure-functions/function-keys-how-to).
const (
	keyHeader    = "x-functions-key"
	keyParameter = "code"
	bearer       = "Bearer " // in Authorization: the only header that Prometheus fills from a Secret
)

// wrongKeyDelay is how long the answer to a wrong key takes. An address has only so many connections that
// can wait for one.
const wrongKeyDelay = time.Second

// guarded requires the key, if there is one, and on loopback a Host header that names this machine:
// otherwise a page in a browser could let its own name resolve to 127.0.0.1 and read everything.
// Under a Functions host, the host checks both. After a request without the right key, the
// connection is closed.
func (h *Host) guarded(next http.Handler, c *callers) http.Handler {
	if h.options.BehindHost {
		return next
	}
	key, local := h.config.Settings.APIKey.Reveal(), config.IsLoopback(h.config.Settings.Listen)
	refuse := func(w http.ResponseWriter, r *http.Request, status int, why string) {
		w.Header().Set("Connection", "close")
		problem.Write(w, r, h.options.Log, status, why)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := givenKey(r)
		// The answer to a probe must not reveal whether a key is right.
		isProbe := r.URL.Path == healthPath
		switch {
		case local && !config.IsLoopback(r.Host):
			refuse(w, r, http.StatusForbidden, "only this machine is answered here: ask for 127.0.0.1 or localhost")
		case key != "" && !isProbe && subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 0:
			if given != "" {
				select {
				case <-time.After(wrongKeyDelay):
				case <-r.Context().Done():
				}
			}
			refuse(w, r, http.StatusUnauthorized, "send the key of FEEDSCALE_API_KEY in the header "+keyHeader+", or as ?"+keyParameter+"=")
		default:
			if key != "" && isProbe {
				w.Header().Set("Connection", "close")
			}
			defer c.hold(r, key != "" && !isProbe)()
			next.ServeHTTP(w, r)
		}
	})
}

// givenKey is the key that a request brings, in a header or, if there is none, in the query.
func givenKey(r *http.Request) string {
	if given := r.Header.Get(keyHeader); given != "" {
		return given
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), bearer); ok {
		return given
	}
	return r.URL.Query().Get(keyParameter)
}
