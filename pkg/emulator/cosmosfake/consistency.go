package cosmosfake

import (
	"slices"
	"strings"
)

// consistencyLevels are the levels that an account can have, the weakest first.
var consistencyLevels = []string{"Eventual", "ConsistentPrefix", "Session", "BoundedStaleness", "Strong"}

func consistencyRank(level string) int {
	return slices.IndexFunc(consistencyLevels, func(known string) bool { return strings.EqualFold(known, level) })
}

// checkConsistency refuses a level that is stronger than the account's; its words are those in
// https://github.com/OrleansContrib/Orleans.CosmosDB/issues/15.
func (c *call) checkConsistency() error {
	level := c.Header.Get("x-ms-consistency-level")
	if level == "" {
		return nil
	}
	rank := consistencyRank(level)
	switch {
	case rank < 0:
		return badRequest("The value %q of x-ms-consistency-level is not a consistency level.", level)
	case rank > consistencyRank(c.server.consistency):
		return badRequest("ConsistencyLevel %s specified in the request is invalid when service is configured with consistency level %s. Ensure the request consistency level is not stronger than the service consistency level.", consistencyLevels[rank], c.server.consistency)
	}
	return nil
}

// inSession reports whether a read must honour its session token: other levels ignore it.
func (c *call) inSession() bool {
	level := c.Header.Get("x-ms-consistency-level")
	if level == "" {
		level = c.server.consistency
	}
	return strings.EqualFold(level, "Session")
}
