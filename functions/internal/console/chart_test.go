package console_test

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// plot draws values that are evenly apart.
func plot(values []float64, width, height int, from, to time.Time) string {
	p := console.Plot{Title: "lag", Height: height, From: from, To: to, Style: console.Style{Width: width}}
	if from.IsZero() {
		p.To = from.Add(time.Hour)
	}
	for i, v := range values {
		p.Points = append(p.Points, console.Point{Time: p.From.Add(time.Duration(i) * p.To.Sub(p.From) / time.Duration(len(values))), Value: v})
	}
	return p.String()
}

func TestAChartShowsWhatIsKnownAndNothingElse(t *testing.T) {
	t.Parallel()
	unknown := math.NaN()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule          string
		values        []float64
		width, height int
		from, to      time.Time
		want          string
	}{
		{"bars from zero to the greatest, by eighths of a line", []float64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 17, 1, time.Time{}, time.Time{}, `
lag
     8 │ ▁▂▃▄▅▆▇█
     0 └─────────
`},
		{"over several lines", []float64{0, 4, 8, 12, 16}, 13, 2, time.Time{}, time.Time{}, `
lag
    16 │   ▄█
       │ ▄███
     0 └─────
`},
		{"unknown is a gap with a sign, not zero", []float64{8, unknown, unknown, 0, 8}, 13, 1, time.Time{}, time.Time{}, `
lag
     8 │█   █
     0 └─??──
`},
		{"what is above zero shows", []float64{1, 0, 1_000_000}, 11, 1, time.Time{}, time.Time{}, `
lag
    1M │▁ █
     0 └───
`},
		{"all zero", []float64{0, 0}, 10, 1, time.Time{}, time.Time{}, `
lag
     1 │
     0 └──
`},
		{"all unknown", []float64{unknown, unknown}, 10, 1, time.Time{}, time.Time{}, `
lag
     1 │
     0 └??
`},
		{"no value at all", nil, 10, 1, time.Time{}, time.Time{}, `
lag
     1 │
     0 └
`},
		{"what was not recorded is none of both", []float64{8}, 12, 1, time.Time{}, time.Time{}, `
lag
     8 │█
     0 └─
`},
		{"a column is the greatest of its values, unknown where all are", []float64{8, 1, unknown, 4, unknown, unknown}, 11, 1, time.Time{}, time.Time{}, `
lag
     8 │█▄
     0 └──?
`},
		{"fewer values than columns are stretched", []float64{8, 4}, 12, 1, time.Time{}, time.Time{}, `
lag
     8 │██▄▄
     0 └────
`},
		{"the times of both ends", []float64{8, 8}, 48, 1, noon.Add(-10 * time.Minute), noon.Add(4 * time.Hour), `
lag
     8 │████████████████████████████████████████
     0 └────────────────────────────────────────
        Mar 1 11:50                  Mar 1 16:00
`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got, want := plot(c.values, c.width, c.height, c.from, c.to), c.want[1:]
			if c.from.IsZero() { // the times below the axis are not what the case is about
				got = got[:strings.LastIndex(strings.TrimSuffix(got, "\n"), "\n")+1]
			}
			if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestAChartKeepsToItsWidth(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)
	for _, span := range []time.Duration{time.Second, time.Minute, time.Hour, 25 * time.Hour, 200 * time.Hour, 10_000 * time.Hour} {
		for width := 1; width < 130; width++ {
			drawn := plot([]float64{1, 22, 333, 12_345}, width, 3, from, from.Add(span))
			for line := range strings.Lines(drawn) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, 9) {
					t.Fatalf("%d characters of %d:\n%s", n, width, drawn)
				}
			}
		}
	}
}
