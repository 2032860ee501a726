package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
)

// chunks records the size of each write.
type chunks struct {
	strings.Builder
	longest int
}

func (c *chunks) Write(b []byte) (int, error) {
	c.longest = max(c.longest, len(b))
	return c.Builder.Write(b)
}

func TestAListIsWrittenAnEntryAtATime(t *testing.T) {
	t.Parallel()
	one := report.Stored{Processor: report.Processor{Name: "orders", Uncovered: nil}}
	all := report.NewList(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), []report.Stored{one, one, one, one}, []report.StoredGroup{})
	for _, l := range []report.List{all, {}} {
		want, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var got chunks
		if err := report.WriteObject(&got, l); err != nil || got.String() != string(want)+"\n" {
			t.Errorf("%v, got\n%swant\n%s", err, got.String(), want)
		}
		if len(l.Processors) > 0 && got.longest > len(want)/3 {
			t.Errorf("%d of %d bytes are written at once", got.longest, len(want))
		}
	}
}
