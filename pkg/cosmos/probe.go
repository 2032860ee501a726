package cosmos

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Refusal is the error of a probe that the service answered with a status of 400 or above. Its text
// is the one that every other request has for that answer.
type Refusal struct {
	Status    int
	Substatus int
	Route     Route  // how the request reached the account's firewall; "" where the firewall is not what refuses
	Address   string // the caller's IP address as the firewall saw it; "" where it does not say

	sentence error
}

func (r *Refusal) Error() string { return r.sentence.Error() }
func (r *Refusal) Unwrap() error { return r.sentence }

// Route is how a request reached an account, in the words of the firewall's message
// (https://learn.microsoft.com/azure/cosmos-db/nosql/troubleshoot-forbidden).
type Route string

// The routes that the firewall's message names.
const (
	PublicInternet  Route = "public internet"
	ServiceEndpoint Route = "service endpoint"
	PrivateEndpoint Route = "private endpoint"
)

// ProbeAccount reads the account's description, which the SDKs read before anything else. The error
// of each probe is a *Refusal where the service answered, and says what to do in every case.
func (a *Account) ProbeAccount(ctx context.Context) error {
	return a.probe(ctx, subject{"", Container{"*", "*"}}, "/", resource{})
}

// ProbeDatabase reads the description of a database.
func (a *Account) ProbeDatabase(ctx context.Context, id string) error {
	return a.probe(ctx, subject{"", Container{id, "*"}}, "/dbs/"+url.PathEscape(id), resource{"dbs", "dbs/" + id})
}

// ProbeContainer reads the description of a container.
func (a *Account) ProbeContainer(ctx context.Context, c Container) error {
	return a.probe(ctx, subject{"", c}, c.path(), resource{"colls", c.link()})
}

// ProbeFeed reads the partition key ranges of a container, and of the first range one page of the
// change feed, from now.
func (a *Account) ProbeFeed(ctx context.Context, c Container) error {
	var answer *http.Response
	ctx = policy.WithCaptureResponse(ctx, &answer)
	ranges, _, err := a.Ranges(ctx, c)
	if err == nil {
		_, _, err = a.FeedPage(ctx, c, Position{Range: ranges[0].ID, Continuation: "*"})
	}
	return refusal(answer, err)
}

// ProbeLeases reads one page, with one item, of the leases in a container. The error is ErrMissing
// where the container does not exist.
func (a *Account) ProbeLeases(ctx context.Context, c Container) error {
	var t tally
	about := subject{"the leases in", c}
	client, err := a.client()
	if err != nil {
		return err
	}
	container, err := client.NewContainer(c.Database, c.ID)
	if err != nil {
		return err
	}
	ctx = context.WithValue(context.WithValue(ctx, callKey{}, ctx), tallyKey{}, &t)
	_, err = queryPage(ctx, container, selectLeases(anyLease), azcosmos.QueryOptions{PageSizeHint: 1})
	switch response := (*azcore.ResponseError)(nil); {
	case err == nil:
		return nil
	case missing(err):
		return ErrMissing
	case errors.As(err, &response):
		a.forget(client)
		return refusal(response.RawResponse, a.failed(about, &t, err))
	default:
		a.forget(client)
		return a.failed(about, &t, err)
	}
}

// probe reads a resource and looks at the status of the answer alone.
func (a *Account) probe(ctx context.Context, about subject, path string, signed resource) error {
	var t tally
	response, err := a.get(context.WithValue(ctx, tallyKey{}, &t), path, signed, nil)
	switch {
	case err != nil:
		return a.failed(about, &t, err)
	case response.StatusCode != http.StatusOK:
		return refusal(response, a.refused(about, response))
	}
	return nil
}

var (
	blockedRoute   = regexp.MustCompile(`(?i)originated from .{0,100}through (public internet|service endpoint|private endpoint)`)
	blockedAddress = regexp.MustCompile(`(?i)originated from (?:client )?IP ([0-9a-f.:]+)`)
)

// refusal makes a *Refusal of an error and of the answer that led to it. An error that no answer
// with a status of 400 or above led to is returned as it is.
func refusal(answer *http.Response, err error) error {
	if err == nil || answer == nil || answer.StatusCode < http.StatusBadRequest {
		return err
	}
	r := &Refusal{Status: answer.StatusCode, Substatus: substatus(answer), sentence: err}
	body, readErr := runtime.Payload(answer)
	if readErr != nil || answer.StatusCode != http.StatusForbidden {
		return r
	}
	if route := blockedRoute.FindSubmatch(body); route != nil {
		r.Route = Route(route[1])
		if address := blockedAddress.FindSubmatch(body); address != nil {
			r.Address = string(address[1])
		}
	}
	return r
}
