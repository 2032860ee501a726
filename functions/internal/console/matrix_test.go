package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/simulate"
)

func TestAMatrixSaysWhereAPolicyIsWorseThanKEDA(t *testing.T) {
	t.Parallel()
	cell := func(startUp time.Duration, acting simulate.Acting, r simulate.Result) simulate.Cell {
		return simulate.Cell{Trace: "steady", StartUp: startUp, Acting: acting, Result: r}
	}
	var cells []simulate.Cell
	for i, hours := range []float64{60, 80} {
		startUp := time.Duration(i) * time.Minute
		cells = append(cells,
			cell(startUp, simulate.Consumer, simulate.Result{Scaler: "default", ReplicaHours: hours, OverLag: time.Minute, Out: 2, In: i}),
			cell(startUp, simulate.KEDATrigger, simulate.Result{Scaler: "keda", ReplicaHours: 70, OverLag: time.Minute, Out: 2}),
			cell(startUp, "", simulate.Result{Scaler: "bound", Bound: true, ReplicaHours: 50}),
		)
	}
	var b strings.Builder
	if err := console.WriteMatrix(&b, cells, console.Style{}); err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Fields(line))
	}
	if got, want := strings.Join(lines[1], " "), "steady default consumer 70.0 1.40 1m 0s 3 2 1 0 0 1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(lines) != 4 || lines[2][1] != "keda" || lines[3][1] != "bound" {
		t.Errorf("lines\n%s", b.String())
	}
}
