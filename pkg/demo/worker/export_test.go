package worker

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// Held is a lease as the rule of balance.go sees it.
type Held struct {
	Token, Owner string    // no owner: ""
	Updated      time.Time // when it was last renewed
}

// Share is share, by the tokens of the leases.
func Share(all []Held, host string, now time.Time, expiration time.Duration) (tokens []string) {
	leases := make([]leasefake.DotNetLease, len(all))
	for i, h := range all {
		leases[i].Token = h.Token
		if h.Owner != "" {
			leases[i].Owner = &h.Owner
		}
		leases[i].Stamp(h.Updated)
	}
	for _, l := range share(leases, host, now, expiration) {
		tokens = append(tokens, l.Token)
	}
	return tokens
}
