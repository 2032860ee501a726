package changefeed_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// A lease of the .NET SDK: which partition, who works on it, and up to where it is processed.
func ExampleParseLease() {
	lease, err := changefeed.ParseLease([]byte(`{
		"id": "projectionshop.documents.azure.com_q0oIAA==_q0oIALS6YvQ=..0",
		"LeaseToken": "0",
		"Owner": "worker-1",
		"ContinuationToken": "\"511\"",
		"timestamp": "2026-03-04T23:55:16.5233511Z",
		"Mode": "Incremental Feed"
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	lsn, _ := changefeed.ContinuationLSN(lease.Continuation)
	fmt.Println("partition", lease.Token)
	fmt.Println("owner", lease.Owner, "renewed it at", lease.Time.Format(time.TimeOnly))
	fmt.Println("checkpoint at LSN", lsn)
	// Output:
	// partition 0
	// owner worker-1 renewed it at 23:55:16
	// checkpoint at LSN 511
}

// The answer to a read from a lease's position: the newest LSN of the partition is 520, the oldest
// pending change has LSN 512 and was written 44 seconds before the answer.
func ExampleMeasure() {
	page, err := changefeed.ReadPage(strings.NewReader(`{"Documents":[{"id":"a","_lsn":512,"_ts":1772668516}]}`), changefeed.Incremental)
	if err != nil {
		fmt.Println(err)
		return
	}
	reading := changefeed.Measure(changefeed.Answer{
		Status:       http.StatusOK,
		SessionToken: "0:-1#520",
		Date:         time.Unix(1772668560, 0),
		Page:         page,
	})
	fmt.Printf("%d transactions are pending, the oldest for %d s\n", reading.Lag, *reading.Age)
	// Output: 9 transactions are pending, the oldest for 44 s
}
