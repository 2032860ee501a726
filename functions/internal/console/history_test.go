package console_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// sample is one of a poll before noon; a lag below 0 is unknown.
func sample(ago time.Duration, lag, age int64, previous, replicas int) state.Sample {
	s := state.Sample{
		Time: noon.Add(-ago), Status: changefeed.StatusUnknown, Replicas: &replicas, Previous: &previous,
		Reasons: []scaling.Reason{{Step: "threshold", Replicas: replicas, Why: fmt.Sprintf("lag %d at 100 per replica", lag)}},
	}
	if lag >= 0 {
		s.Lag, s.Status, s.Complete = &lag, changefeed.StatusOK, true
	}
	if lag > 0 {
		s.Age, s.Status = &age, changefeed.StatusLagging
	}
	return s
}

// hour has a poll every 5 min of an hour: two are missing, one knows nothing, and the first is the
// first of all.
func hour() []state.Sample {
	first := sample(60*time.Minute, 0, 0, 0, 0)
	first.Previous = nil
	return []state.Sample{
		first,
		sample(55*time.Minute, 0, 0, 0, 0),
		sample(50*time.Minute, 120, 30, 0, 2),
		sample(45*time.Minute, 480, 200, 2, 5),
		sample(40*time.Minute, 950, 7300, 5, 8),
		sample(25*time.Minute, 700, 600, 8, 8),
		sample(20*time.Minute, -1, 0, 8, 8),
		sample(15*time.Minute, 300, 250, 8, 4),
		sample(10*time.Minute, 90, 60, 4, 4),
		sample(5*time.Minute, 0, 0, 4, 0),
	}
}

func TestAHistoryIsThreeChartsAndTheDecisions(t *testing.T) {
	t.Parallel()
	golden(t, "history", func(w io.Writer, style console.Style) error {
		return console.WriteHistory(w, report.History{Processor: "orders", Samples: hour()}, noon.Add(-time.Hour), noon, style)
	})
}

func TestOfManyDecisionsTheLastAreListed(t *testing.T) {
	t.Parallel()
	var samples []state.Sample
	for n := range 25 {
		samples = append(samples, sample(time.Duration(25-n)*time.Minute, int64(n), int64(n), n, n+1))
	}
	var b strings.Builder
	testworld.Must(t, console.WriteHistory(&b, report.History{Processor: "orders", Samples: samples}, noon.Add(-time.Hour), noon, console.Style{}))
	if n := strings.Count(b.String(), " → "); n != 20 || !strings.Contains(b.String(), "the last 20 of 25 changes; --output json has all\n") || !strings.HasSuffix(b.String(), "lag 24 at 100 per replica\n") {
		t.Errorf("%d decisions are listed:\n%s", n, b.String())
	}
}

func TestAHistoryWithoutADecisionSaysSo(t *testing.T) {
	t.Parallel()
	only := state.Sample{Time: noon.Add(-time.Minute), Status: changefeed.StatusUnknown}
	var b strings.Builder
	testworld.Must(t, console.WriteHistory(&b, report.History{Processor: "orders", Samples: []state.Sample{only}}, noon.Add(-time.Hour), noon, console.Style{}))
	if !strings.HasPrefix(b.String(), "orders  2026-03-01T11:00:00Z to 2026-03-01T12:00:00Z: 1 sample, 1 unknown\n") || !strings.HasSuffix(b.String(), "\nno decision changed the replicas\n") {
		t.Errorf("got\n%s", b.String())
	}
}

func TestInCSVWhatIsUnknownIsEmpty(t *testing.T) {
	t.Parallel()
	golden(t, "history-csv", func(w io.Writer, _ console.Style) error { return console.WriteSamplesCSV(w, hour()) })
}
