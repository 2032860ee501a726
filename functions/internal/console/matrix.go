package console

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// WriteMatrix writes a line of CSV for each cell of a matrix, with the names of a Simulation's.
func WriteMatrix(w io.Writer, cells []simulate.Cell, seeds int) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write(append([]string{"trace", "startUpSeconds", "delaySeconds", "acting", "policy", "seeds"}, resultColumns...))
	for _, c := range cells {
		result := Simulation{Results: []simulate.Result{c.Result}}.Report().Results[0]
		_ = out.Write(append([]string{
			c.Trace, strconv.FormatInt(whole(c.StartUp), 10), strconv.FormatInt(whole(c.Delay), 10),
			string(c.Acting), result.Policy, strconv.Itoa(seeds),
		}, result.columns()...))
	}
	out.Flush()
	return out.Error()
}
