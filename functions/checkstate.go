package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// storageScope is what a token for Azure Table storage is for, in every cloud.
const storageScope = "https://storage.azure.com/.default"

func (c *checker) checkState(ctx context.Context) []checkLine {
	state := c.config.Settings.State
	if state.BoltPath != "" {
		s := checkSection{target: "bolt:" + state.BoltPath, processors: c.processors}
		s.try(ctx, "write state", func(context.Context) finding { return boltFinding(state.BoltPath) })
		return s.lines
	}
	return c.checkTable(ctx, state.Table)
}

// boltFinding tells whether the file can be written. One that is not there is
// not created.
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
		return bad("end the other process, or ask it over HTTP", "another process has the state file open")
	}
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		return bad(fix, "%v", err)
	}
	return good("the file can be written, and no other process has it open")
}

// writableFolder returns the folder that is there already in which the file, or
// the folders that it is in, would be made.
func writableFolder(path string) (string, error) {
	folder := filepath.Dir(path)
	for {
		_, err := os.Stat(folder)
		if err == nil {
			break
		}
		if parent := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && parent != folder {
			folder = parent
			continue
		}
		return "", err
	}
	probe, err := os.CreateTemp(folder, ".feedscale-check-*")
	if err != nil {
		return "", err
	}
	return folder, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (c *checker) checkTable(ctx context.Context, t config.Table) []checkLine {
	access := tableAccess{table: t, setting: "FEEDSCALE_STATE"}
	address, err := t.ServiceURL, error(nil)
	if t.ServiceURL == "" {
		access.setting = t.Connection.Setting
		address, err = tablestore.Endpoint(t.Connection.ConnectionString.Reveal())
	}
	s := checkSection{target: "state table " + t.Name, processors: c.processors}
	if err == nil {
		access.endpoint, err = httpEndpoint(tableService, address, access.setting)
	}
	if err != nil {
		s.add("dns", bad("correct setting "+access.setting, "%v", err))
		return s.lines
	}
	s.target = access.endpoint.name() + "/" + t.Name
	s.reach(ctx, access.endpoint)
	s.tryAnyway(ctx, "identity", func(ctx context.Context) (f finding) {
		if t.ServiceURL == "" {
			return notTried("setting %s holds a connection string: no token is needed", access.setting)
		}
		access.who, f = c.signIn(ctx, config.Identity{}, storageScope)
		return f
	})
	s.try(ctx, "write state", func(ctx context.Context) finding {
		store, err := c.openTable(t)
		if err != nil {
			return bad("correct setting "+access.setting, "%v", err)
		}
		created, err := store.Probe(ctx)
		return access.finding(created, err)
	})
	return s.lines
}

func (c *checker) openTable(t config.Table) (*tablestore.Store, error) {
	if t.ServiceURL == "" {
		return tablestore.OpenWithConnectionString(t.Connection.ConnectionString.Reveal(), t.Name, azcore.ClientOptions{})
	}
	credential, err := c.wiring.credential(config.Identity{})
	if err != nil {
		return nil, err
	}
	return tablestore.OpenWithIdentity(t.ServiceURL, t.Name, credential, azcore.ClientOptions{})
}

// tableAccess is who writes the state where, for the advice on what is refused.
type tableAccess struct {
	table    config.Table
	endpoint serviceEndpoint
	setting  string
	who      principal // where an identity signs in
}

func (a tableAccess) finding(created bool, err error) finding {
	var r *tablestore.Refusal
	switch {
	case errors.As(err, &r):
		return bad(a.fix(r), "%v", r)
	case err != nil:
		return bad("", "%v", err)
	case created:
		return good("the table was missing and is created; a row can be written, read and deleted")
	}
	return good("a row can be written, read and deleted")
}

// signed tells whether the connection string has a shared access signature.
func (a tableAccess) signed() bool {
	return strings.Contains(strings.ToLower(a.table.Connection.ConnectionString.Reveal()), "sharedaccesssignature=")
}
