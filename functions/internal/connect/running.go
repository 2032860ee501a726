package connect

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// Running is the state in a file that another process has open, and is asked for over HTTP. It only reads: a
// commit is lost, as with state.Empty.
type Running struct {
	state.Empty
	*API
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
	api.inUse = inUse
	return &Running{API: api}, nil
}

// Load asks for the State of a processor or group. Its Version is one that nothing can be committed to.
func (r *Running) Load(ctx context.Context, name string) (state.Entry, error) {
	stored, err := r.state(ctx, name)
	if err != nil || stored == nil {
		return state.Entry{}, err
	}
	return state.NewEntry(*stored, "asked"), nil
}

// History asks for what is recorded of a processor.
func (r *Running) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	return r.API.History(ctx, name, from, to)
}
