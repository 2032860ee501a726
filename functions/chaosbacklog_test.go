package main_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// waiting is how many events of one processor wait after a night without a broker.
const waiting = 5000

// leaveWaiting has those events in the outbox of orders before the first process starts.
func (w *chaos) leaveWaiting(table string) {
	w.t.Helper()
	connection := made(w.t, startTables).ConnectionString()
	store, err := tablestore.OpenWithConnectionString(connection, table, azcore.ClientOptions{Transport: bounded.NewClient()})
	testworld.Must(w.t, err)
	epoch := time.Now().Add(-time.Hour)
	event := func(sequence int64) []byte {
		body, err := events.ScaleEvent{Time: epoch, Data: events.Data{
			Processor: "orders", Epoch: epoch.Unix(), Sequence: sequence, DesiredReplicas: 1, Active: true, Direction: "none", Complete: true, Status: "lagging",
		}}.Encode()
		testworld.Must(w.t, err)
		return body
	}
	testworld.Must(w.t, store.Commit(w.t.Context(), "", state.State{Processor: "orders", Epoch: epoch.Unix(), Sequence: waiting},
		&state.Event{Processor: "orders", Sequence: waiting, Body: event(waiting)}))
	service, err := aztables.NewServiceClientFromConnectionString(connection, nil)
	testworld.Must(w.t, err)
	var rows []aztables.TransactionAction
	for sequence := int64(1); sequence < waiting; sequence++ {
		entity, err := aztables.EDMEntity{
			Entity:     aztables.Entity{PartitionKey: "orders", RowKey: fmt.Sprintf("outbox-%012d", sequence)},
			Properties: map[string]any{"body0": aztables.EDMBinary(event(sequence))},
		}.MarshalJSON()
		testworld.Must(w.t, err)
		rows = append(rows, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entity})
	}
	for some := range slices.Chunk(rows, 100) {
		_, err := service.NewClient(table).SubmitTransaction(w.t.Context(), some, nil)
		testworld.Must(w.t, err)
	}
}
