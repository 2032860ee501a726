package estimator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// look returns what the lease container of a processor holds, read within the last minutes; nothing if
// it was never read, since only people use it.
func (e *Estimator) look(ctx context.Context, m *measurement) []changefeed.FoundProcessor {
	leases := m.leaseSource()
	fresh := func(tried time.Time, err error) bool { return err == nil && e.now().Sub(tried).Abs() < readAgainAfter }
	held, _ := cachedIn[[]changefeed.FoundProcessor](&e.inventories, leases).get(e.now, fresh, func() ([]changefeed.FoundProcessor, error) {
		documents, usage, err := leases.account.Leases(ctx, leases.container, nil)
		m.usage.Add(usage)
		if errors.Is(err, cosmos.ErrMissing) {
			err = nil
		}
		return changefeed.Sorted(documents, e.now()).Inventory(), err
	})
	return held
}

// nearest says, of a lease container in which no lease is a processor's, what it holds instead: a misspelt
// name or a wrong container would pass for a processor that never ran. "" = it holds no leases. Leases for
// the monitored container come first, then those whose ids differ least. A processorName that another entry
// has is not suggested: two cannot read the same leases.
func nearest(held []changefeed.FoundProcessor, m *measurement) string {
	wanted, own := m.processor.ProcessorName, strings.TrimSuffix(m.prefixes[0], "..")
	says, least := "", math.MaxInt
	for _, p := range held {
		text := fmt.Sprintf("it holds leases whose ids begin with %q, and this processor's begin with %q", p.Prefix, own)
		distance := len(own) + changefeed.NameDistance(p.Prefix, own)
		switch name, here := m.processorName(p.Prefix); {
		case here && slices.Contains(m.processor.NamesInUse, name):
			continue
		case here && name == "":
			text, distance = "leave processorName out, since its leases have none", len(wanted)
		case here:
			text, distance = fmt.Sprintf("did you mean processorName %s?", name), changefeed.NameDistance(name, wanted)
		}
		if distance < least {
			says, least = text, distance
		}
	}
	if says == "" {
		return ""
	}
	return fmt.Sprintf("lease container %s holds no lease of this processor: %s", m.processor.LeaseContainer, says)
}

// processorName reads the processorName in a prefix of lease ids. here: the leases are for the container
// that m monitors.
func (m *measurement) processorName(prefix string) (name string, here bool) {
	for _, own := range m.prefixes {
		container := strings.TrimSuffix(own[len(m.processor.ProcessorName):], "..")
		if name, here = strings.CutSuffix(prefix, container); here {
			break
		}
	}
	return name, here
}
