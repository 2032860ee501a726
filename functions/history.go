package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/term"

	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// history prints what was measured and decided of one processor.
func (p program) history(ctx context.Context, args []string) int {
	f := p.flags("history", "NAME [--since 24h] [--output chart|json|csv]")
	since := f.Duration("since", 24*time.Hour, "how far to look back")
	output := f.String("output", "chart", "chart, json or csv")
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if status, done := p.parse(f, args); done {
		return status
	}
	var mistakes flagMistakes
	if name == "" {
		mistakes.add("the name of a processor is missing, as in feedscale history orders")
	}
	if *since <= 0 {
		mistakes.add("--since is %s; allowed are durations above 0, such as 24h", *since)
	}
	mistakes.choice("output", *output, "chart", "json", "csv")
	if p.refuse("history", mistakes) {
		return exitUsage
	}
	settings, err := config.ReadSettings(p.environ)
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	}
	until := time.Now().UTC()
	samples, err := recall(ctx, settings, name, until.Add(-*since), until)
	switch {
	case errors.Is(err, boltstore.ErrInUse), errors.Is(err, boltstore.ErrDamaged):
		return p.fail(exitUsage, err)
	case err != nil:
		return p.fail(exitIncomplete, err)
	}
	if len(samples) == 0 {
		return p.fail(exitIncomplete, fmt.Errorf("nothing is recorded of processor %q in the last %s: is the name right, does FEEDSCALE_STATE name the state of the poller, and has it polled?", name, *since))
	}
	switch *output {
	case "json":
		err = writeJSON(p.stdout, processors.History{Processor: name, Samples: samples})
	case "csv":
		err = writeSamplesCSV(p.stdout, samples)
	default:
		h := recorded{name: name, samples: samples, from: until.Add(-*since), until: until}
		_, err = io.WriteString(p.stdout, h.render(terminalWidth(p.stdout), colored(p.stdout, p.getenv("NO_COLOR"))))
	}
	if err != nil {
		return p.fail(exitIncomplete, err)
	}
	return exitOK
}

// recall reads the history from where it is kept: a state file that another
// process has open, through that process.
func recall(ctx context.Context, settings config.Settings, name string, from, to time.Time) ([]state.Sample, error) {
	store, err := wiring{identities: make(map[config.Identity]azcore.TokenCredential), settings: settings}.store(settings.State, true)
	if errors.Is(err, boltstore.ErrInUse) {
		samples, asked := askForHistory(ctx, settings.Listen, name, from, to)
		if asked != nil {
			return nil, fmt.Errorf("%w; nor does that process tell its history (%w): set FEEDSCALE_LISTEN to its address", err, asked)
		}
		return samples, nil
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.History(ctx, name, from, to)
}

// askTimeout bounds the question: the process that is asked runs on this machine.
const askTimeout = 10 * time.Second

// askForHistory asks the process that listens at an address.
func askForHistory(ctx context.Context, address, name string, from, to time.Time) ([]state.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	question := url.URL{
		Scheme: "http", Host: address, Path: strings.Replace(processors.RouteHistory, "{name}", name, 1),
		RawQuery: url.Values{"from": {from.Format(time.RFC3339Nano)}, "to": {to.Format(time.RFC3339Nano)}}.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	var history processors.History
	if err := json.NewDecoder(answer.Body).Decode(&history); err != nil {
		return nil, fmt.Errorf("%s answers something else: %w", address, err)
	}
	return history.Samples, nil
}

// terminalWidth is how many characters a line has room for: 100 where nobody
// can tell.
func terminalWidth(w io.Writer) int {
	const fallback = 100
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return fallback
}

// writeSamplesCSV writes a line for each sample. Empty is unknown.
func writeSamplesCSV(w io.Writer, samples []state.Sample) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write([]string{
		"time", "lag", "changeAgeSeconds", "complete", "status", "partitionCount", "partitionsWithLag", "arrivalPerSecond", "drainPerReplica",
		"metricValue", "active", "previousReplicas", "desiredReplicas", "direction", "why",
	})
	for _, s := range samples {
		_ = out.Write([]string{
			s.Time.UTC().Format(time.RFC3339Nano), field(s.Lag), field(s.Age), strconv.FormatBool(s.Complete), string(s.Status),
			field(s.PartitionCount), field(s.PartitionsWithLag), field(s.Arrival), field(s.DrainPerReplica),
			field(s.MetricValue), field(s.Active), field(s.Previous), field(s.Replicas), field(s.Direction), lastReason(s.Reasons),
		})
	}
	out.Flush()
	return out.Error()
}

func field[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

func lastReason(reasons []scaling.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	last := reasons[len(reasons)-1]
	return last.Step + ": " + last.Why
}

// recorded is the history of one processor, oldest first.
type recorded struct {
	name        string
	samples     []state.Sample
	from, until time.Time
}

const (
	chartHeight   = 8
	mostDecisions = 20
)

// render draws the lag, the age and the replicas over time, and lists the last
// decisions that changed something.
func (h recorded) render(width int, colors bool) string {
	var b strings.Builder
	unknown, decisions := 0, 0
	for _, s := range h.samples {
		if s.Lag == nil {
			unknown++
		}
		if s.Changed() {
			decisions++
		}
	}
	fmt.Fprintf(&b, "%s  %s to %s: %s, %d unknown, %s\n\n", paint(h.name, bold, colors),
		h.from.Format(time.RFC3339), h.until.Format(time.RFC3339), count(len(h.samples), "sample"), unknown, count(decisions, "change"))
	for _, series := range []struct {
		title string
		value func(state.Sample) float64
	}{
		{"lag, transactions", func(s state.Sample) float64 { return orUnknown(s.Lag) }},
		{"age of the oldest change, seconds", func(s state.Sample) float64 {
			if s.Age == nil && s.Lag != nil && *s.Lag == 0 {
				return 0
			}
			return orUnknown(s.Age)
		}},
		{"replicas", func(s state.Sample) float64 { return orUnknown(s.Replicas) }},
	} {
		b.WriteString(plot{
			title: series.title, values: h.columns(max(1, width-scaleWidth-axisWidth), series.value),
			width: width, height: chartHeight, from: h.from, to: h.until, colors: colors,
		}.String() + "\n")
	}
	h.decisions(&b, width, colors)
	return b.String()
}

func orUnknown[T int | int64](n *T) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// columns spreads the samples over as many columns: the greatest value of each.
// Where samples follow each other as usual, a column between two shows the
// earlier one; where polls are missing, or did not know the value, it is a gap.
func (h recorded) columns(n int, value func(state.Sample) float64) []float64 {
	columns := make([]float64, n)
	for i := range columns {
		columns[i] = math.NaN()
	}
	span, usual := float64(h.until.Sub(h.from)), h.usualStep()
	for i, s := range h.samples {
		v := value(s)
		first := int(float64(n) * float64(s.Time.Sub(h.from)) / span)
		end := first + 1
		if i+1 < len(h.samples) {
			if next := h.samples[i+1].Time; next.Sub(s.Time) <= 2*usual {
				end = max(end, int(float64(n)*float64(next.Sub(h.from))/span))
			}
		}
		for column := first; column < min(end, n); column++ {
			if !(columns[column] >= v) {
				columns[column] = v
			}
		}
	}
	return columns
}

// usualStep is the median time between two samples.
func (h recorded) usualStep() time.Duration {
	var steps []time.Duration
	for i := 1; i < len(h.samples); i++ {
		steps = append(steps, h.samples[i].Time.Sub(h.samples[i-1].Time))
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// decisions lists those that changed something, the newest last.
func (h recorded) decisions(b *strings.Builder, width int, colors bool) {
	rows := [][]cell{{{"TIME", bold, false}, {"REPLICAS", bold, true}, {"LAG", bold, true}, {"AGE", bold, true}, {"STATUS", bold, false}, {"WHY", bold, false}}}
	for _, s := range h.samples {
		if !s.Changed() {
			continue
		}
		from := "none"
		if s.Previous != nil {
			from = fmt.Sprint(*s.Previous)
		}
		rows = append(rows, []cell{
			{s.Time.UTC().Format(time.RFC3339), plain, false},
			{fmt.Sprintf("%s → %d", from, *s.Replicas), plain, true},
			{number(s.Lag), plain, true},
			{age(s.Age), plain, true},
			{string(s.Status), statusColor(s.Status), false},
			{lastReason(s.Reasons), dim, false},
		})
	}
	switch changes := len(rows) - 1; {
	case changes == 0:
		b.WriteString("no decision changed the replicas\n")
		return
	case changes > mostDecisions:
		fmt.Fprintf(b, "the last %d of %d changes; --output json has all\n", mostDecisions, changes)
		rows = append(rows[:1], rows[len(rows)-mostDecisions:]...)
	}
	writeRows(b, rows, colors, width)
}
