package cosmosfake

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// sessionToken says how far a range was when it answered: id:-1#LSN, and in an account of several
// regions the progress of each read region too.
func (c *call) sessionToken(p *partition, lsn uint64) string {
	token := p.id + ":-1#" + strconv.FormatUint(lsn, 10)
	for i := range c.server.regions[1:] {
		token += fmt.Sprintf("#%d=%d", i+1, lsn)
	}
	return token
}

// checkSession refuses a read whose session token is ahead of the range, as a replica does that
// lags behind.
func (c *call) checkSession(p *partition, lsn uint64) error {
	if !c.inSession() {
		return nil
	}
	for _, token := range strings.Split(c.Header.Get("x-ms-session-token"), ",") {
		id, progress, ok := strings.Cut(strings.TrimSpace(token), ":")
		if !ok || id != p.id {
			continue
		}
		parts := strings.Split(progress, "#")
		at := parts[0]
		if len(parts) > 1 {
			at = parts[1]
		}
		if wanted, err := strconv.ParseUint(at, 10, 64); err == nil && wanted > lsn {
			return &fault{status: http.StatusNotFound, substatus: substatusSessionNotReached, message: "The read session is not available for the input session token.", charge: 1}
		}
	}
	return nil
}

// progress adds the headers that tell where a range stands.
func (c *call) progress(r *reply, p *partition, lsn uint64) {
	n := strconv.FormatUint(lsn, 10)
	r.set("x-ms-session-token", c.sessionToken(p, lsn))
	r.set("x-ms-documentdb-partitionkeyrangeid", p.id)
	r.set("x-ms-cosmos-physical-partition-id", p.id)
	for _, name := range [...]string{"lsn", "x-ms-cosmos-llsn", "x-ms-quorum-acked-lsn", "x-ms-cosmos-quorum-acked-llsn", "x-ms-global-committed-lsn"} {
		r.set(name, n)
	}
	r.set("x-ms-number-of-read-regions", strconv.Itoa(len(c.server.regions)-1))
}
