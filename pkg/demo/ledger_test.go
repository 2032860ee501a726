package demo_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAPaymentIsSettledThoughTheLedgerIsOutOfRequestUnitsForAWhile(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Create(cosmosfake.ContainerSpec{ID: "ledger", PartitionKey: []string{"/accountId"}, Throughput: 400})
	const throttled = 6 // more than the SDK retries by itself
	w.Account.Control(cosmosfake.Times(throttled, cosmosfake.UpsertDocument, cosmosfake.Answer{
		Status: http.StatusTooManyRequests, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}},
	}))
	ledger, err := demo.OpenLedger(w.Account.Endpoint())
	testworld.Must(t, err)
	change := json.RawMessage(`{"id": "payment-000001", "accountId": "account-001", "amount": 7, "_lsn": 3}`)
	testworld.Must(t, demo.Settle(t.Context(), ledger, change))
	if n := w.Account.Requests().Requests[cosmosfake.UpsertDocument]; n != throttled+1 {
		t.Errorf("it was written %d times, want %d", n, throttled+1)
	}
	if err := demo.Settle(t.Context(), ledger, json.RawMessage(`{"id": 7}`)); err == nil {
		t.Error("what is no payment was settled")
	}
}
