package metrics

import (
	"context"

	"github.com/feedscale/feedscale/pkg/events"
)

// Publisher returns p, with every delivery counted.
func (h *Handler) Publisher(p events.Publisher) events.Publisher {
	return publisher{Publisher: p, ticks: &h.ticks}
}

type publisher struct {
	events.Publisher
	ticks *ticks
}

func (p publisher) Publish(ctx context.Context, body []byte) error {
	err := p.Publisher.Publish(ctx, body)
	if err != nil {
		p.ticks.publishErrors.Inc()
	} else {
		p.ticks.published.Inc()
	}
	return err
}
