package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// Running is the state in a file that another process has open, which is asked over HTTP. It can be
// read alone: what is committed to it is nowhere, as with state.Empty.
type Running struct {
	state.Empty
	api   *API
	inUse error // a boltstore.ErrInUse, which every error wraps
}

// askTimeout bounds a question.
const askTimeout = 10 * time.Second

// listens reports whether a process answers where one of these settings listens.
func (c *Connections) listens() bool {
	connection, err := net.DialTimeout("tcp", c.settings.Listen, time.Second)
	if err == nil {
		connection.Close()
	}
	return err == nil
}

// running asks at the address where a process of these settings listens.
func (c *Connections) running(inUse error) (*Running, error) {
	api, err := NewAPI("http://"+c.settings.Listen, c.settings.APIKey.Reveal())
	if err != nil {
		return nil, fmt.Errorf("%w; nor does FEEDSCALE_LISTEN, %s, say where it can be asked", inUse, c.settings.Listen)
	}
	if c.Asking != nil {
		c.Asking(api.Address())
	}
	return &Running{api: api, inUse: inUse}, nil
}

// Load asks for the State of a processor or group. Its Version is one that nothing can be committed to.
func (r *Running) Load(ctx context.Context, name string) (state.Entry, error) {
	stored, err := r.api.state(ctx, name)
	if err != nil || stored == nil {
		return state.Entry{}, r.wrong(err)
	}
	return state.NewEntry(*stored, "asked"), nil
}

// History asks for what is recorded of a processor.
func (r *Running) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	samples, err := r.api.History(ctx, name, from, to)
	return samples, r.wrong(err)
}

// List asks for everything there is, or for what has one of some names.
func (r *Running) List(ctx context.Context, names []string) (report.List, error) {
	all, err := r.api.List(ctx, names)
	return all, r.wrong(err)
}

// Report asks for what ran since a time.
func (r *Running) Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (shadow.Report, error) {
	all, err := r.api.Report(ctx, names, since, progress)
	return all, r.wrong(err)
}

// wrong says of an error that it stands in the way of reading the file. A name that nobody has does not.
func (r *Running) wrong(err error) error {
	if err == nil || errors.Is(err, report.ErrUnknownName) {
		return err
	}
	return fmt.Errorf("%w; nor does that process tell what it holds (%w): set FEEDSCALE_LISTEN to its address", r.inUse, err)
}
