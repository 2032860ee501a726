package console

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// WriteMatrixCSV writes a line for each cell of a matrix, with the names of a Simulation's.
func WriteMatrixCSV(w io.Writer, cells []simulate.Cell, seeds int) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write(append([]string{"trace", "startUpSeconds", "delaySeconds", "acting", "policy", "seeds"}, resultColumns...))
	for _, c := range cells {
		result := Simulation{Results: []simulate.Result{c.Result}}.Report().Results[0]
		_ = out.Write(append([]string{
			sheet(c.Trace), strconv.FormatInt(whole(c.StartUp), 10), strconv.FormatInt(whole(c.Delay), 10),
			string(c.Acting), sheet(result.Policy), strconv.Itoa(seeds),
		}, result.columns()...))
	}
	out.Flush()
	return out.Error()
}

// conditions are those that the cells of one trace differ in.
type conditions struct {
	trace          string
	startUp, delay time.Duration
}

// matrixRow is a policy, and who acts on it, on one trace: its cells, and the bound and KEDA under the
// same conditions.
type matrixRow struct {
	trace, policy string
	acting        simulate.Acting
	own           []simulate.Result
	bound, keda   []simulate.Result
}

// WriteMatrix prints a line for each trace, policy and way of acting: means over the start-up times
// and delays, how many times the bound's replica-hours that is, and in how many of the cells it is
// worse than KEDA's own trigger in each.
func WriteMatrix(w io.Writer, cells []simulate.Cell, style Style) error {
	table := [][]Cell{Head("TRACE", "POLICY", "ACTING", ">REPLICA-HOURS", ">x BOUND", ">OVER LAG", ">OVER AGE", ">ACTIONS", ">CELLS", ">HOURS > KEDA", ">LAG > KEDA", ">AGE > KEDA", ">ACTIONS > KEDA")}
	for _, r := range matrixRows(cells) {
		mean, bound, times := simulate.Mean(r.own), simulate.Mean(r.bound), "-"
		if bound.ReplicaHours > 0 {
			times = fmt.Sprintf("%.2f", mean.ReplicaHours/bound.ReplicaHours)
		}
		line := []Cell{
			{r.trace, Plain, false}, {r.policy, Plain, false}, {string(r.acting), Plain, false},
			{fmt.Sprintf("%.1f", mean.ReplicaHours), Plain, true},
			{times, Plain, true},
			{Brief(mean.OverLag), overColor(mean.OverLag), true},
			{Brief(mean.OverAge), overColor(mean.OverAge), true},
			{fmt.Sprint(mean.Actions()), Plain, true},
			{fmt.Sprint(len(r.own)), Plain, true},
		}
		for _, worse := range []func(own, keda simulate.Result) bool{
			func(own, keda simulate.Result) bool { return own.ReplicaHours > keda.ReplicaHours },
			func(own, keda simulate.Result) bool { return own.OverLag > keda.OverLag },
			func(own, keda simulate.Result) bool { return own.OverAge > keda.OverAge },
			func(own, keda simulate.Result) bool { return own.Actions() > keda.Actions() },
		} {
			n := 0
			for i := range r.own {
				if worse(r.own[i], r.keda[i]) {
					n++
				}
			}
			line = append(line, Cell{fmt.Sprint(n), overColor(time.Duration(n)), true})
		}
		table = append(table, line)
	}
	return style.print(w, style.Table(table, "CELLS", "ACTIONS", "ACTIONS > KEDA", "OVER LAG", "LAG > KEDA", "AGE > KEDA", "OVER AGE", "x BOUND"))
}

// matrixRows gathers the cells of each trace, policy and way of acting, in the order of the first.
func matrixRows(cells []simulate.Cell) (rows []*matrixRow) {
	bound, keda := make(map[conditions]simulate.Result), make(map[conditions]simulate.Result)
	for _, c := range cells {
		at := conditions{c.Trace, c.StartUp, c.Delay}
		if c.Result.Bound {
			bound[at] = c.Result
		} else if c.Acting == simulate.KEDATrigger {
			keda[at] = c.Result
		}
	}
	type key struct {
		trace, policy string
		acting        simulate.Acting
	}
	index := make(map[key]*matrixRow)
	for _, c := range cells {
		k := key{c.Trace, c.Result.Scaler, c.Acting}
		if index[k] == nil {
			index[k] = &matrixRow{trace: c.Trace, policy: c.Result.Scaler, acting: c.Acting}
			rows = append(rows, index[k])
		}
		row, at := index[k], conditions{c.Trace, c.StartUp, c.Delay}
		row.own, row.bound, row.keda = append(row.own, c.Result), append(row.bound, bound[at]), append(row.keda, keda[at])
	}
	return rows
}
