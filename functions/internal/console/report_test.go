package console_test

import (
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// reported is a day of three processors, two of them of a group. The third cannot be read.
func reported() shadow.Report {
	c := shadow.NewCollector(noon.Add(-24*time.Hour), noon)
	var hours []state.Summary
	for i := range 24 {
		if i%5 == 4 {
			continue
		}
		hours = append(hours, state.Summary{
			Hour: noon.Add(time.Duration(i-24) * time.Hour), Seconds: 3600, OwnersKnown: 3600, ReplicaSeconds: 7200, Changes: i % 3,
			OverObjective: 90, WorstAge: new(int64(200 + i)), RequestCharge: 1234.5,
			StatusSeconds: map[changefeed.Status]float64{changefeed.StatusOK: 3000, changefeed.StatusStalled: 540, changefeed.StatusUnclaimed: 60},
		})
	}
	c.Add("orders", "shop-workers", hours, nil)
	c.Add("payments", "shop-workers", hours[:3], nil)
	c.Add("shipments", "", nil, errors.New("row state of partition shipments cannot be read"))
	r := c.Report()
	r.Processors[0].Model = &shadow.Model{
		Since: noon.Add(-24 * time.Hour), Seconds: 86400, GuessedSeconds: 14400, Throughput: 25, StartUpSeconds: 30, MeasuredReplicas: new(2.0),
		Policies: []shadow.ModelResult{
			{Policy: "own", ReplicaHours: 31.4, ScaleActions: 12, OverObjective: 60, WorstAge: 88}, {Policy: "keda", ReplicaHours: 40.2, ScaleActions: 31, WorstAge: 44},
		}, Ran: new("keda"), ErrorPercent: new(-4.2),
	}
	r.Processors[1].Model = &shadow.Model{Error: new("recording payments: no sample has an arrival rate")}
	return r
}
