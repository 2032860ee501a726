package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
)

// WriteFound prints a line for each processor that was found in an account, and what was skipped.
func WriteFound(w io.Writer, found discover.Found, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "account %s: %s, %s: leases in %d of the %d that can hold them by the partition key (%.1f RU)\n",
		found.Account, report.Count(len(found.Databases), "database"), report.Count(found.Containers, "container"), len(found.Leases), found.Candidates, found.RequestCharge)
	for _, r := range found.Leases {
		fmt.Fprintf(&b, "\n%s: %s\n%s", style.Paint(printable(r.LeaseContainer), Bold), leaseCount(r.Processors), leaseTable(r.Processors, style))
	}
	if len(found.Skipped) > 0 {
		b.WriteString("\n")
	}
	for _, s := range found.Skipped {
		b.WriteString(style.wrapLines(fmt.Sprintf("%s %s: %s\n", style.Paint("skipped", Yellow), printable(s.What), oneLine(s.Why))))
	}
	return style.print(w, b.String())
}

// ProcessorsFile is the processors file for what was found. What a person has to decide is a
// comment.
func ProcessorsFile(found discover.Found, now time.Time) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=%s\n", config.SchemaURL)
	fmt.Fprintf(&b, `# Made by feedscale init at %s, from account %s. Every field:
# https://github.com/feedscale/feedscale/blob/main/docs/configure.md; the other pages are beside it.
#
# Decide for each processor:
# - who acts on its decisions, and its target, if that needs one: act.md
# - minReplicaCount, maxReplicaCount, changeFeedLagThreshold and sizing: tune.md
# - startFrom: beginning, if the application starts there, which no lease tells: lag.md
# - group, if several run in one deployment: configure.md
processors:
`, now.UTC().Format(time.RFC3339), found.Account)
	for _, r := range found.Leases {
		for _, p := range r.Processors {
			live, _ := owners(p)
			head := fmt.Sprintf("%s of %s in %s, %d of %s live", report.Count(p.Partitions, "lease"), p.Monitored, r.LeaseContainer, live, report.Count(len(p.Owners), "owner"))
			entry, err := entryText(p, Style{})
			if err != nil {
				return "", err
			}
			b.WriteString("\n" + comment(head, Style{}) + entry)
		}
	}
	return b.String(), nil
}
