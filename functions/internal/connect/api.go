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
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

const apiConnections = 64

// API asks the HTTP API of a feedscale that runs elsewhere: for what people look at, and for what a scaler
// needs, whose judgement it takes over: what is a 503 there is no count here. What it has already is not sent again (ETag).
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
	tag := ""
	before, has := a.known.Load(name)
	if has {
		tag = before.(known).tag
	}
	answer, body, err := a.get(ctx, name, tag, a.base.JoinPath("api", "processors", name))
	if err != nil {
		return 0, err
	}
	if has && answer.StatusCode == http.StatusNotModified {
		return before.(known).replicas, nil
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

// List asks for everything there is, or for what has one of some names.
func (a *API) List(ctx context.Context, names []string) (report.List, error) {
	var all report.List
	return all, a.ask(ctx, "", url.Values{"name": names}, &all, "api", "processors")
}

// state asks for the whole State that is stored under a name; nil where none is.
func (a *API) state(ctx context.Context, name string) (stored *state.State, err error) {
	return stored, a.ask(ctx, name, nil, &stored, "api", "processors", name, "state")
}

// history asks for what is recorded of a processor.
func (a *API) history(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	var recorded report.History
	err := a.ask(ctx, name, url.Values{"since": {from.Format(time.RFC3339Nano)}, "until": {to.Format(time.RFC3339Nano)}}, &recorded, "api", "processors", name, "history")
	return recorded.Samples, err
}

// ask asks about a name for a value.
func (a *API) ask(ctx context.Context, name string, query url.Values, into any, path ...string) error {
	question := a.base.JoinPath(path...)
	question.RawQuery = query.Encode()
	_, body, err := a.get(ctx, name, "", question)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s answers something else than feedscale: %w", a.base, err)
	}
	return nil
}

// get asks a question about a name. Every answer is an error but 200 and, where a tag is given, 304.
func (a *API) get(ctx context.Context, name, tag string, question *url.URL) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	if !a.key.IsZero() {
		request.Header.Set("x-functions-key", a.key.Reveal()) // as the API asks for it (docs/act.md, HTTP)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("feedscale cannot be asked: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("feedscale's answer cannot be read: %w", err)
	case answer.StatusCode == http.StatusOK, tag != "" && answer.StatusCode == http.StatusNotModified:
		return answer, body, nil
	}
	return nil, nil, a.refusal(name, answer, body)
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
