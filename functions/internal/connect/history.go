package connect

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// History reads what is recorded of a processor from where it is kept.
func (c *Connections) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	store, err := c.Store(c.settings.State, true)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.History(ctx, processor, from, to)
}
