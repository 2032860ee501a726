package app

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/problem"
)

// healthPath answers probes, which have no key. It says nothing but that HTTP is answered.
const healthPath = "/healthz"

// Where a Functions host looks for its key, so that a caller need not know who answers
// (https://learn.microsoft.com/azure/azure-functions/function-keys-how-to).
const (
	keyHeader    = "x-functions-key"
	keyParameter = "code"
)

// guarded asks for the key, where there is one, and on loopback for a Host header that names this
// machine: a page in a browser that had its own name resolve to 127.0.0.1 could else read everything.
// Under a Functions host both are the host's to do.
func (h *Host) guarded(next http.Handler) http.Handler {
	if h.options.BehindHost {
		return next
	}
	key, local := h.config.Settings.APIKey.Reveal(), isLoopback(h.config.Settings.Listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case local && !isLoopback(r.Host):
			problem.Write(w, r, h.options.Log, http.StatusForbidden, "only this machine is answered here: ask for 127.0.0.1 or localhost")
		case key != "" && r.URL.Path != healthPath && !hasKey(r, key):
			problem.Write(w, r, h.options.Log, http.StatusUnauthorized, "send the key of FEEDSCALE_API_KEY in the header "+keyHeader+", or as ?"+keyParameter+"=")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hasKey reports whether a request brings the key, in the header or, where there is none, in the query. The
// time that it takes tells neither the key nor how long it is.
func hasKey(r *http.Request, key string) bool {
	given := r.Header.Get(keyHeader)
	if given == "" {
		given = r.URL.Query().Get(keyParameter)
	}
	ours, theirs := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(ours[:], theirs[:]) == 1
}

// isLoopback reports whether host or host:port can mean this machine alone. A name other than
// localhost may resolve to anything.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
