package testworld_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAWorldInMemoryHasTheTimeOfItsBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testworld.New(t, testworld.Options{InMemory: true})
		w.Container("orders", 1)
		started := time.Now().Unix()
		w.Write("orders", 1)
		time.Sleep(time.Hour)
		w.Write("orders", 1)
		type document struct {
			Written int64 `json:"_ts"`
		}
		read := testworld.Documents[document](t, w.SDK(), testworld.Database, "orders")
		if len(read) != 2 || read[0].Written != started || read[1].Written != started+3600 {
			t.Errorf("got %v, want two documents, an hour apart", read)
		}
	})
}
