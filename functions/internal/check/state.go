package check

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/connectionstring"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// storageScope is what a token for Azure Table storage is for, in every cloud.
const storageScope = "https://storage.azure.com/.default"

func (c *checker) state() []*section {
	kept := c.config.Settings.State
	if kept.BoltPath == "" {
		return []*section{c.table(kept.Table)}
	}
	s := &section{target: "bolt:" + kept.BoltPath, processors: c.processors}
	s.try("write state", func(context.Context) finding { return boltFinding(kept.BoltPath) })
	return []*section{s}
}

// boltFinding reports whether the file can be written. A missing one is not created.
func boltFinding(path string) finding {
	const fix = "give another file in FEEDSCALE_STATE, as in bolt:./data/feedscale.db"
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder, err := writableFolder(path)
		if err != nil {
			return bad(fix+", or let this user write there", "the state file cannot be created: %v", err)
		}
		return good("there is no file yet, and it can be created in %s", folder)
	case err != nil:
		return bad(fix, "%v", err)
	}
	store, err := boltstore.Open(path)
	if errors.Is(err, boltstore.ErrInUse) {
		return doubtful("if this one is to poll as well, give it another file in FEEDSCALE_STATE", "another process has the state file open, as run does while it polls")
	}
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		return bad(fix, "%v", err)
	}
	return good("the file can be written, and no other process has it open")
}

// writableFolder returns the existing folder in which the file, or the first missing folder of its path, would be
// made.
func writableFolder(path string) (string, error) {
	folder := filepath.Dir(path)
	for parent := filepath.Dir(folder); parent != folder; parent = filepath.Dir(folder) {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folder = parent
	}
	probe, err := os.CreateTemp(folder, ".feedscale-check-*")
	if err != nil {
		return "", err
	}
	return folder, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (c *checker) table(t config.Table) *section {
	setting := cmp.Or(t.Setting, "FEEDSCALE_STATE") // which may name the URL itself
	address := t.ServiceURL
	if address == "" {
		storage, _ := connectionstring.ParseStorage(t.ConnectionString.Reveal()) // the configuration has checked it
		address = storage.Endpoint
	}
	endpoint := httpEndpoint(address, setting)
	s := &section{target: endpoint.name() + "/" + t.Name, processors: c.processors}
	s.reach(endpoint)
	who := c.signIn(s, setting, t.ServiceURL != "", config.Identity{}, nil, storageScope)
	store, err := c.connections.Table(t)
	s.try("write state", func(ctx context.Context) finding {
		if err != nil {
			return bad("correct setting "+setting, "%v", err)
		}
		return holds(state.Probe(ctx, store), *who, "a row can be written, read and deleted")
	})
	return s
}
