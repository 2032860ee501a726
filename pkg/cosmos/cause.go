package cosmos

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// words are how each kind of refusal is called in a Cause.
var words = map[RefusalKind]string{
	Rejected: "the request is rejected", NotPermitted: "not permitted", KeyRefused: "the key is refused", KeysDisabled: "keys are not accepted",
	Firewall: "the firewall", Forbidden: "forbidden", Missing: "not found", Throttled: "throttled", Unavailable: "it cannot answer",
}

// effect is what any cause of an account keeps a processor from.
const effect = "could not be measured"

// Cause returns the account that refuses, or the container of it, and how.
func (r *Refusal) Cause() changefeed.Cause {
	c := changefeed.Cause{Of: "account " + r.Account, Says: "refuses (" + words[r.Kind] + ")", Effect: effect, Remedy: r.Advice()}
	if r.Container.Database != "" {
		c.Part = subject{container: r.Container}.named()
	}
	if r.Status != 0 {
		c.Says = fmt.Sprintf("refuses (%d, %s)", r.Status, words[r.Kind])
	}
	if command := r.Command(); command != "" {
		c.Remedy += ": " + command
	}
	return c
}
