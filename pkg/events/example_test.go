package events_test

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/events"
)

// message is the body of a message as it comes from the queue.
func message(sequence, replicas int) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"orders-%012d","source":"feedscale","type":"feedscale.scale.v1","subject":"orders",`+
		`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",`+
		`"data":{"processor":"orders","sequence":%[1]d,"desiredReplicas":%[2]d,"previousReplicas":3,"active":true,"direction":"out",`+
		`"metricValue":412,"lag":412,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":true,"status":"lagging",`+
		`"reasons":[{"step":"threshold","replicas":%[2]d,"why":"lag 412 at 100 per replica"}],"target":{"deployment":"orders"}}}`, sequence, replicas)
}

func ExampleDecode() {
	e, err := events.Decode(message(42, 5))
	if err != nil {
		fmt.Println("into the dead-letter queue:", err)
		return
	}
	fmt.Printf("%s: %d replicas of %s, since %s\n", e.ID(), e.DesiredReplicas, e.Target["deployment"], e.Reasons[0].Why)

	_, err = events.Decode([]byte(`{"specversion":"1.0","type":"com.example.order.v2"}`))
	fmt.Println("into the dead-letter queue:", err)
	// Output:
	// orders-000000000042: 5 replicas of orders, since lag 412 at 100 per replica
	// into the dead-letter queue: not a scale event: type is "com.example.order.v2", this consumer reads "feedscale.scale.v1"
}

// A queue delivers at least once and, without sessions, in any order: what is not newer than the last
// event that was acted on is completed and ignored.
func ExamplePosition_Precedes() {
	acted := map[string]events.Position{} // by subject
	for _, body := range [][]byte{message(42, 5), message(42, 5), message(41, 3), message(43, 6)} {
		e, err := events.Decode(body)
		if err != nil {
			fmt.Println(err)
			return
		}
		if !acted[e.Processor].Precedes(e.Position()) {
			fmt.Println(e.ID(), "is stale or repeated")
			continue
		}
		fmt.Println(e.ID(), "asks for", e.DesiredReplicas)
		acted[e.Processor] = e.Position()
	}
	// Output:
	// orders-000000000042 asks for 5
	// orders-000000000042 is stale or repeated
	// orders-000000000041 is stale or repeated
	// orders-000000000043 asks for 6
}
