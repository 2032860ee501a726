package poller

import (
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// messages are what is to be logged of a measurement.
type messages struct {
	unknown    string // that the lag is not known, or not fully; "" if it is known or a Cause says why not
	conditions []int  // partitions in each of the conditions
}

func messagesOf(lag *changefeed.ProcessorLag) messages {
	s := messages{conditions: make([]int, len(conditions))}
	explains := func(c changefeed.Cause) bool { return !c.Beside }
	switch {
	case lag.Time.IsZero() || lag.Complete() || slices.ContainsFunc(lag.Causes, explains):
	case lag.Known():
		s.unknown = "the lag is not fully known"
	default:
		s.unknown = "the lag is not known"
	}
	for i := range lag.Partitions {
		for j, c := range conditions {
			if c.holds(&lag.Partitions[i]) {
				s.conditions[j]++
			}
		}
	}
	return s
}

// say logs what an operator has to know of a measurement and the one before did not say. sayCauses
// logs what refuses, once for all processors.
func (p *Poller) say(name string, last *changefeed.ProcessorLag, before messages, lag changefeed.ProcessorLag) {
	now := messagesOf(&lag)
	if now.unknown != "" && now.unknown != before.unknown {
		p.Log.Warn(now.unknown, "processor", name, "error", lag.Problem())
	}
	if lag.Nearest != "" && lag.Nearest != last.Nearest {
		p.Log.Warn("no lease of a processor was found", "processor", name, "next", lag.Nearest)
	}
	// At a split a lease may be left over in one poll.
	stays := slices.DeleteFunc(slices.Clone(lag.Leftover), func(lease string) bool { return !slices.Contains(last.Leftover, lease) })
	if left := strings.Join(stays, " "); left != "" && p.said.News("leftover of "+name, left) {
		p.Log.Warn("leases of a processor are left over", "processor", name, "kind", "leftover", "leases", left, "next", "others have replaced them, and nobody deleted them: they are not counted; delete them while no replica runs")
	}
	if lag.Uncovered() && !last.Uncovered() {
		p.Log.Warn("keys of a processor are uncovered", "processor", name, "kind", string(changefeed.StatusUncovered), "holes", len(lag.Coverage.Holes), "next", "no lease covers them, so that no replica reads them: https://github.com/feedscale/feedscale/blob/main/docs/status.md#uncovered says how to create the lease again")
	}
	for i, n := range now.conditions {
		if c := conditions[i]; n > before.conditions[i] {
			p.Log.Warn(c.says, "processor", name, "kind", c.kind, "partitions", n, "next", c.next)
		}
	}
}

// conditions are what an operator has to know of partitions (docs/status.md). Each is logged when
// more partitions are in it than before. The alerts of infra look for these messages.
var conditions = []struct {
	says, kind, next string
	holds            func(p *changefeed.Partition) bool
}{
	{"a processor is stalled", string(changefeed.StallHung), "look at the log of the owner: it holds the lease of pending changes, but its handler does not return",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallHung }},
	{"a processor is stalled", string(changefeed.StallFlapping), "look at the log of the owners: the lease is given up and taken again, since the handler throws; feedscale inspect NAME PARTITION names the change",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallFlapping }},
	{"changes of a processor are about to expire", string(changefeed.StatusExpiring), "they leave their retention unread: see that the processor runs, or lengthen the retention",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusExpiring }},
	{"positions of a processor are ahead of the feed", string(changefeed.StatusAhead), "the leases are from another account, region or container: changes up to their positions are skipped",
		func(p *changefeed.Partition) bool { return p.Ahead != nil }},
	{"partitions of a processor are unclaimed", string(changefeed.StatusUnclaimed), "changes are pending and nobody takes the lease: see that its replicas start and may write to the lease container",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusUnclaimed }},
	{"a position of a processor went backwards", "rewound", "changes are processed again: a lease was restored, reset or deleted",
		func(p *changefeed.Partition) bool { return p.Rewound != nil }},
	{"leases of a processor have a time that no owner can have written", "badLeaseTime", "it counts as none: set the clock of the owners, or find what else writes leases",
		func(p *changefeed.Partition) bool { return p.BadTime }},
}
