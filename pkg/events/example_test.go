package events_test

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/events"
)

// message is the body of a message as it comes from the queue.
func message(epoch, sequence, replicas int) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"orders-%010d-%012d","source":"feedscale","type":"feedscale.scale.v1","subject":"orders",`+
		`"time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",`+
		`"data":{"processor":"orders","group":null,"epoch":%[1]d,"sequence":%[2]d,"desiredReplicas":%[3]d,"previousReplicas":3,"active":true,"direction":"out",`+
		`"metricValue":412,"lag":412,"changeAgeSeconds":34,"partitionCount":8,"partitionsWithLag":5,"complete":true,"status":"lagging",`+
		`"reasons":[{"step":"threshold","replicas":%[3]d,"why":"lag 412 at 100 per replica"}],"target":{"deployment":"orders"}}}`, epoch, sequence, replicas)
}

func ExampleDecode() {
	e, err := events.Decode(message(1767225600, 42, 5))
	if err != nil {
		fmt.Println("into the dead-letter queue:", err)
		return
	}
	fmt.Printf("%s: %d replicas of %s, since %s\n", e.ID(), e.DesiredReplicas, e.Target["deployment"], e.Reasons[0].Why)

	_, err = events.Decode([]byte(`{"specversion":"1.0","type":"com.example.order.v2"}`))
	fmt.Println("into the dead-letter queue:", err)
	// Output:
	// orders-1767225600-000000000042: 5 replicas of orders, since lag 412 at 100 per replica
	// into the dead-letter queue: not a scale event: type is "com.example.order.v2", this consumer reads "feedscale.scale.v1"
}

// A queue delivers at least once and, without sessions, in any order: what is not newer than the last
// event that was acted on is completed and ignored.
func ExampleData_ID() {
	acted := map[string]string{} // ids by subject
	for _, body := range [][]byte{
		message(1767225600, 42, 5), message(1767225600, 42, 5), message(1767225600, 41, 3), message(1767225600, 43, 6),
		message(1767232800, 1, 4), message(1767225600, 44, 7),
	} {
		e, err := events.Decode(body)
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.ID() <= acted[e.Subject()] {
			fmt.Println(e.ID(), "is stale or repeated")
			continue
		}
		fmt.Println(e.ID(), "asks for", e.DesiredReplicas)
		acted[e.Subject()] = e.ID()
	}
	// Output:
	// orders-1767225600-000000000042 asks for 5
	// orders-1767225600-000000000042 is stale or repeated
	// orders-1767225600-000000000041 is stale or repeated
	// orders-1767225600-000000000043 asks for 6
	// orders-1767232800-000000000001 asks for 4
	// orders-1767225600-000000000044 is stale or repeated
}
