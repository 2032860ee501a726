package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
)

const apiConnections = 64

// API asks the HTTP API of a feedscale that runs elsewhere for what a scaler needs, and takes over its
// judgement: what is a 503 there is no count here. What it has already is not sent again (ETag).
type API struct {
	base   *url.URL
	key    config.Secret
	client *http.Client
	known  sync.Map // known, by name
}

// known is the last count that the API told of a name.
type known struct {
	tag      string
	replicas int
}

// NewAPI asks the API at an address such as https://APP.azurewebsites.net, with a
// function key, where one is needed.
func NewAPI(address, key string) (*API, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil {
		return nil, errors.New("it is not the address of feedscale's HTTP API; allowed is, for example, https://APP.azurewebsites.net, without a key in it") // nor shown, since one may be

	}
	base.Path = strings.TrimSuffix(base.Path, "/api")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = apiConnections, apiConnections
	return &API{base: base, key: config.NewSecret(key), client: &http.Client{Transport: bounded.Answers(transport), Timeout: askTimeout}}, nil
}

// Address is where it asks.
func (a *API) Address() string { return a.base.String() }

// Changed returns nil: the API does not tell.
func (a *API) Changed(string) <-chan struct{} { return nil }

// Replicas asks.
func (a *API) Replicas(ctx context.Context, name string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.JoinPath("api", "processors", name).String(), nil)
	if err != nil {
		return 0, err
	}
	if !a.key.IsZero() {
		request.Header.Set("x-functions-key", a.key.Reveal())
	}
	before, has := a.known.Load(name)
	if has {
		request.Header.Set("If-None-Match", before.(known).tag)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("feedscale cannot be asked: %w", err)
	}
	defer answer.Body.Close()
	if has && answer.StatusCode == http.StatusNotModified {
		return before.(known).replicas, nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("feedscale's answer cannot be read: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return 0, a.refusal(name, answer, body)
	}
	var stored struct {
		DesiredReplicas *int `json:"desiredReplicas"`
	}
	if err := json.Unmarshal(body, &stored); err != nil || stored.DesiredReplicas == nil {
		return 0, fmt.Errorf("%s answers something else than a processor or group of feedscale", a.base)
	}
	if tag := answer.Header.Get("ETag"); tag != "" {
		a.known.Store(name, known{tag, *stored.DesiredReplicas})
	}
	return *stored.DesiredReplicas, nil
}

// refusal is what an answer other than a count means. A 404 is of feedscale only where it says so: a
// wrong address answers one, too.
func (a *API) refusal(name string, answer *http.Response, body []byte) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	ours := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(body, &problem) == nil
	switch {
	case ours && answer.StatusCode == http.StatusNotFound:
		return report.UnknownName(name)
	case ours && problem.Detail != "":
		return fmt.Errorf("%s: %s", answer.Status, problem.Detail)
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s refuses the key (%s): set FEEDSCALE_API_KEY to a function key of the function processors", a.base, answer.Status)
	}
	return fmt.Errorf("%s answers %s: is it the address of feedscale?", a.base, answer.Status)
}
