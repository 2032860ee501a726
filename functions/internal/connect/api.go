package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

const (
	apiConnections = 64
	maxKnown       = 10_000 // names whose last count is remembered; then that of all is told anew
	historyAtOnce  = 24 * time.Hour
	longestHistory = 8760 * time.Hour // that FEEDSCALE_HISTORY may keep
	maxDetail      = 300              // bytes that are repeated of why the API refuses
)

// API asks the HTTP API of a feedscale that runs elsewhere, for people and for a scaler. What is a 503 there is no
// count here. A count that has not changed is not sent again (ETag).
type API struct {
	base   *url.URL
	key    config.Secret
	client *http.Client
	inUse  error // a boltstore.ErrInUse, if it is asked in place of a state file; every error wraps it

	mu    sync.Mutex
	known map[string]known // by name, at most maxKnown
}

// known is the last count that the API told of a name.
type known struct {
	tag      string
	replicas int
}

// NewAPI asks the API at an address such as https://APP.azurewebsites.net, with a
// function key, if one is needed.
func NewAPI(address, key string) (*API, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil {
		return nil, errors.New("it is not the address of feedscale's HTTP API; allowed is, for example, https://APP.azurewebsites.net, without a key in it") // nor shown, since one may be
	}
	base.Path = strings.TrimSuffix(base.Path, "/api")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = apiConnections, apiConnections
	client := bounded.Client(bounded.Answers(transport))
	client.Timeout = askTimeout
	return &API{base: base, key: config.NewSecret(key), client: client, known: make(map[string]known)}, nil
}

// Address is where it asks.
func (a *API) Address() string { return a.base.String() }

// Changed returns nil: the API does not tell.
func (a *API) Changed(string) <-chan struct{} { return nil }

// Replicas asks.
func (a *API) Replicas(ctx context.Context, name string) (int, error) {
	question, err := a.about(name)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	before := a.known[name]
	a.mu.Unlock()
	answer, err := a.get(ctx, name, before.tag, question)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotModified {
		return before.replicas, nil
	}
	var stored struct {
		DesiredReplicas *int `json:"desiredReplicas"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil || stored.DesiredReplicas == nil {
		return 0, fmt.Errorf("%s answers something else than a processor or group of feedscale", a.base)
	}
	if tag := answer.Header.Get("ETag"); tag != "" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.known) >= maxKnown {
			clear(a.known)
		}
		a.known[name] = known{tag, *stored.DesiredReplicas}
	}
	return *stored.DesiredReplicas, nil
}

// about returns the address of a name, or of a part of it. Text that cannot be a name is refused:
// otherwise its author could choose the path of a request that carries the key.
func (a *API) about(name string, more ...string) (*url.URL, error) {
	if !events.IsName(name) {
		return nil, report.UnknownName(name)
	}
	return a.base.JoinPath(append([]string{"api", "processors", name}, more...)...), nil
}

// List requests all processors and groups, or those with the given names.
func (a *API) List(ctx context.Context, names []string) (report.List, error) {
	var all report.List
	err := a.ask(ctx, "", a.base.JoinPath("api", "processors"), url.Values{"name": names}, &all)
	for i := range all.Processors {
		if p := &all.Processors[i]; p.Findings == nil { // which is not the same as none
			p.Findings = []report.Finding{{Code: "unknown", Severity: report.Warning, Sentence: "the feedscale at " + a.base.Host + " has no findings: it is of an earlier release", Remedy: "update it"}}
		}
	}
	return all, err
}

// state asks for the whole State that is stored under a name; nil if none is.
func (a *API) state(ctx context.Context, name string) (stored *state.State, err error) {
	question, err := a.about(name, "state")
	if err != nil {
		return nil, err
	}
	return stored, a.ask(ctx, name, question, nil, &stored)
}

// History asks for what is recorded of a processor, a day at a time: the API has a limit.
func (a *API) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	question, err := a.about(name, "history")
	if err != nil {
		return nil, err
	}
	if oldest := to.Add(-longestHistory); from.Before(oldest) {
		from = oldest
	}
	var samples []state.Sample
	for ; from.Before(to); from = from.Add(historyAtOnce) {
		until := from.Add(historyAtOnce)
		if to.Before(until) {
			until = to
		}
		var recorded report.History
		window := url.Values{"since": {from.Format(time.RFC3339Nano)}, "until": {until.Format(time.RFC3339Nano)}}
		if err := a.ask(ctx, name, question, window, &recorded); err != nil {
			return nil, err
		}
		samples = append(samples, recorded.Samples...)
	}
	return samples, nil
}

// Report asks for what ran since a time, a page at a time. progress is told of how many processors were
// read; how many there are the API does not say, which is 0.
func (a *API) Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (all shadow.Report, err error) {
	query := url.Values{"name": names, "since": {since.Format(time.RFC3339Nano)}}
	for {
		var page shadow.Report
		if err := a.ask(ctx, strings.Join(names, ", "), a.base.JoinPath("api", "report"), query, &page); err != nil {
			return all, err
		}
		if page.Note == "" {
			return all, fmt.Errorf("%s answers something else than a report of feedscale", a.base)
		}
		all.Join(page)
		if all.NextPage == nil {
			return all, nil
		}
		if fmt.Sprint(*all.NextPage) == query.Get("page") {
			return all, fmt.Errorf("%s answers the same page again", a.base)
		}
		query.Set("page", fmt.Sprint(*all.NextPage))
		progress(len(all.Processors), 0)
	}
}

// ask asks about a name for a value. The answer is decoded as it comes, since it may have thousands of
// processors.
func (a *API) ask(ctx context.Context, name string, question *url.URL, query url.Values, into any) error {
	question = question.JoinPath() // a copy
	question.RawQuery = query.Encode()
	answer, err := a.get(ctx, name, "", question)
	if err == nil {
		defer answer.Body.Close()
		if err = json.NewDecoder(answer.Body).Decode(into); err != nil {
			err = fmt.Errorf("%s answers something else than feedscale: %w", a.base, err)
		}
	}
	if err == nil || a.inUse == nil || errors.Is(err, report.ErrUnknownName) { // a name that nobody has
		return err
	}
	return fmt.Errorf("%w; nor does that process tell what it holds (%w): set FEEDSCALE_LISTEN to its address", a.inUse, err)
}

// get asks a question about a name. Every answer is an error but 200 and, if a tag is given, 304.
func (a *API) get(ctx context.Context, name, tag string, question *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return nil, err
	}
	if !a.key.IsZero() {
		request.Header.Set("x-functions-key", a.key.Reveal()) // as the API asks for it (docs/http.md)
	}
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which is long
		}
		return nil, fmt.Errorf("no feedscale answers at %s: %w", a.base, err)
	}
	if answer.StatusCode == http.StatusOK || tag != "" && answer.StatusCode == http.StatusNotModified {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, a.refusal(name, answer)
}

// refusal says what another answer than 200 means. A 404 is feedscale's only if it says so: any server answers
// one.
func (a *API) refusal(name string, answer *http.Response) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	ours := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.NewDecoder(answer.Body).Decode(&problem) == nil
	refused := answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
	switch {
	case refused && a.key.IsZero():
		return fmt.Errorf("%s asks for a key (%s): set FEEDSCALE_API_KEY to it; of a function app, to a function key of the function processors", a.base, answer.Status)
	case refused:
		return fmt.Errorf("%s refuses the key in FEEDSCALE_API_KEY (%s): set it to the key of feedscale run or, of a function app, to a function key of the function processors", a.base, answer.Status)
	case ours && answer.StatusCode == http.StatusNotFound:
		return report.UnknownName(name)
	case ours && problem.Detail != "":
		return fmt.Errorf("%s: %s", answer.Status, strings.ToValidUTF8(problem.Detail[:min(len(problem.Detail), maxDetail)], ""))
	}
	return fmt.Errorf("%s answers %s: is it the address of feedscale?", a.base, answer.Status)
}
