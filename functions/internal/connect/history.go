package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// History reads what is recorded of a processor from where it is kept: a state file that another
// process has open, through that process.
func (c *Connections) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	store, err := c.Store(c.settings.State, true)
	if errors.Is(err, boltstore.ErrInUse) {
		samples, asked := askForHistory(ctx, c.settings.Listen, c.settings.APIKey.Reveal(), processor, from, to)
		if asked != nil {
			return nil, fmt.Errorf("%w; nor does that process tell its history (%w): set FEEDSCALE_LISTEN to its address", err, asked)
		}
		return samples, nil
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.History(ctx, processor, from, to)
}

// askTimeout bounds the question: the process that is asked runs on this machine.
const askTimeout = 10 * time.Second

// askForHistory asks the process that listens at an address, and may want a key; "" = none.
func askForHistory(ctx context.Context, address, key, processor string, from, to time.Time) ([]state.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	question := url.URL{
		Scheme: "http", Host: address, Path: strings.Replace(processors.RouteHistory, "{name}", processor, 1),
		RawQuery: url.Values{"since": {from.Format(time.RFC3339Nano)}, "until": {to.Format(time.RFC3339Nano)}}.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("x-functions-key", key) // as the API asks for it (docs/act.md, HTTP)
	}
	client := bounded.NewClient()
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	var history report.History
	if err := json.NewDecoder(answer.Body).Decode(&history); err != nil {
		return nil, fmt.Errorf("%s answers something else: %w", address, err)
	}
	return history.Samples, nil
}
