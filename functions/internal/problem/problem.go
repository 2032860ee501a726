// Package problem answers a request that cannot be served, as a problem
// document of RFC 9457. The functions of this app share it; it is none itself.
//
// The package is internal to the program: its API may change in any release.
package problem

import (
	"encoding/json"
	"net/http"
)

// Write answers with a problem document.
func Write(w http.ResponseWriter, r *http.Request, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A caller that went away has no use for an error.
	_ = json.NewEncoder(w).Encode(struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Status   int    `json:"status"`
		Detail   string `json:"detail"`
		Instance string `json:"instance"`
	}{"about:blank", http.StatusText(status), status, detail, r.URL.EscapedPath()})
}

// OnlyGET answers any other method than GET, of a path that has that one.
func OnlyGET(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	Write(w, r, http.StatusMethodNotAllowed, "only GET is allowed here")
}
