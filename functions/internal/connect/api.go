package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/refusal"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

const (
	apiConnections = 64
	askTimeout     = 10 * time.Second
	historyAtOnce  = 24 * time.Hour
	longestHistory = 8760 * time.Hour // that FEEDSCALE_HISTORY may keep
)

// API asks the HTTP API of a feedscale that runs elsewhere, for people and for a scaler. What is a 503 there is no
// count here. As a state.Store it only reads: a commit is lost, as with state.Empty.
type API struct {
	state.Empty
	base   *url.URL
	key    config.Secret
	client *http.Client
	inUse  error // a boltstore.ErrInUse, if it is asked in place of a state file; every error wraps it
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
	return &API{base: base, key: config.NewSecret(key), client: client}, nil
}

// Address is where it asks.
func (a *API) Address() string { return a.base.String() }

// Changed returns nil: the API does not tell.
func (a *API) Changed(string) <-chan struct{} { return nil }

// Replicas asks.
func (a *API) Replicas(ctx context.Context, name string) (int, error) {
	var stored struct {
		DesiredReplicas *int `json:"desiredReplicas"`
	}
	if err := a.askAbout(ctx, name, "", nil, &stored); err != nil {
		return 0, err
	}
	if stored.DesiredReplicas == nil {
		return 0, fmt.Errorf("%s answers something else than a processor or group of feedscale", a.base)
	}
	return *stored.DesiredReplicas, nil
}

// List requests all processors and groups, or those with the given names.
func (a *API) List(ctx context.Context, names []string) (report.List, error) {
	var all report.List
	if err := a.ask(ctx, "", url.Values{"name": names}, &all, "processors"); err != nil {
		return all, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all.Processors, func(p report.StoredProcessor) bool { return p.Name == name }) &&
			!slices.ContainsFunc(all.Groups, func(g report.StoredGroup) bool { return g.Name == name }) {
			return all, report.UnknownName(name)
		}
	}
	for i := range all.Processors {
		if p := &all.Processors[i]; p.Findings == nil { // which is not the same as none
			p.Findings = []report.Finding{{Code: "unknown", Severity: report.Warning, Sentence: "the feedscale at " + a.base.Host + " has no findings: it is of an earlier release", Remedy: "update it"}}
		}
	}
	return all, nil
}

// Load asks for the State of a processor or group. Its Version is one that nothing can be committed to.
func (a *API) Load(ctx context.Context, name string) (state.Entry, error) {
	var stored *state.State
	if err := a.askAbout(ctx, name, "state", nil, &stored); err != nil || stored == nil {
		return state.Entry{}, err
	}
	return state.NewEntry(*stored, "asked"), nil
}

// History asks for what is recorded of a processor, a day at a time: the API has a limit.
func (a *API) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
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
		if err := a.askAbout(ctx, name, "history", window, &recorded); err != nil {
			return nil, err
		}
		samples = append(samples, recorded.Samples...)
	}
	return samples, nil
}

// Report asks for what ran since a time, a page at a time. progress is told how many processors were read.
func (a *API) Report(ctx context.Context, names []string, since time.Time, progress func(done int)) (all shadow.Report, err error) {
	query := url.Values{"name": names, "since": {since.Format(time.RFC3339Nano)}}
	for {
		var page shadow.Report
		if err := a.ask(ctx, strings.Join(names, ", "), query, &page, "report"); err != nil {
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
		progress(len(all.Processors))
	}
}

// Get asks for the value at a path below /api.
func (a *API) Get(ctx context.Context, into any, path ...string) error {
	return a.ask(ctx, "", nil, into, path...)
}

// askAbout asks about a processor or group, or about a part of it. Text that cannot be a name is refused:
// otherwise its author could choose the path of a request that carries the key.
func (a *API) askAbout(ctx context.Context, name, part string, query url.Values, into any) error {
	if !events.IsName(name) {
		return report.UnknownName(name)
	}
	return a.ask(ctx, name, query, into, "processors", name, part)
}

// ask asks about a name for a value, at a path below /api. Every answer is an error but 200. It is decoded as it
// comes, since it may have thousands of processors.
func (a *API) ask(ctx context.Context, name string, query url.Values, into any, path ...string) (err error) {
	defer func() {
		if err != nil && a.inUse != nil && !errors.Is(err, report.ErrUnknownName) { // a name that nobody has
			err = fmt.Errorf("%w; nor does that process tell what it holds (%w): set FEEDSCALE_LISTEN to its address", a.inUse, err)
		}
	}()
	question := a.base.JoinPath("api").JoinPath(path...)
	question.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, question.String(), nil)
	if err != nil {
		return err
	}
	if !a.key.IsZero() {
		request.Header.Set("x-functions-key", a.key.Reveal()) // as the API asks for it (docs/http.md)
	}
	answer, err := a.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which is long
		}
		return fmt.Errorf("no feedscale answers at %s: %w", a.base, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return a.refusal(name, answer)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("%s answers something else than feedscale: %w", a.base, err)
	}
	return nil
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
	case ours && answer.StatusCode == http.StatusNotFound && name != "":
		return report.UnknownName(name)
	case ours && problem.Detail != "":
		return fmt.Errorf("%s: %s", answer.Status, refusal.Words(problem.Detail))
	}
	return fmt.Errorf("%s answers %s: is it the address of feedscale?", a.base, answer.Status)
}
