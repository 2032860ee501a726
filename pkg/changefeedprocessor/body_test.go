package changefeedprocessor_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// lingering is a transport that answers the first write with a 429, and reads on in its body while it sends
// the next try, as net/http may.
type lingering struct {
	next  policy.Transporter
	first io.Reader
	late  int // bytes that were left in it
}

func (l *lingering) Do(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodPost:
	case l.first == nil:
		l.first = r.Body
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: http.NoBody, Request: r, Header: http.Header{"Retry-After-Ms": {"1"}}}, err
	default:
		l.late, _ = l.first.Read(make([]byte, 10))
	}
	return l.next.Do(r)
}

func TestATryHasABodyOfItsOwn(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	transport := &lingering{next: w.Line()}
	client, err := azcosmos.NewClientFromConnectionString(w.Account.ConnectionString(),
		changefeedprocessor.ClientOptions(&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport}}))
	testworld.Must(t, err)
	t.Cleanup(client.Close)
	orders, err := client.NewContainer(testworld.Database, "orders")
	testworld.Must(t, err)
	_, err = orders.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"a","pk":"a"}`), nil)
	if err != nil || transport.first == nil || transport.late != 0 {
		t.Errorf("%v, and the first try took %d bytes of the second", err, transport.late)
	}
}
