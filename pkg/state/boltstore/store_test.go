package boltstore_test

import (
	"path/filepath"
	"testing"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

func TestStoreKeepsItsContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) state.Store {
		return open(t, filepath.Join(t.TempDir(), "feedscale.db"))
	})
}

// open leaves closing to the caller.
func open(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	store, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
