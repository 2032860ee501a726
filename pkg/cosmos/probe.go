package cosmos

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// ProbeAccount reads the account's description, which the SDKs read before anything else. The error
// of each probe is a *Refusal where the service answered, and says what to do in every case.
func (a *Account) ProbeAccount(ctx context.Context) error {
	return a.probe(ctx, subject{}, "/", resource{})
}

// ProbeDatabase reads the description of a database.
func (a *Account) ProbeDatabase(ctx context.Context, id string) error {
	return a.probe(ctx, subject{container: Container{Database: id}}, "/dbs/"+url.PathEscape(id), resource{"dbs", "dbs/" + id})
}

// ProbeContainer reads the description of a container.
func (a *Account) ProbeContainer(ctx context.Context, c Container) error {
	return a.probe(ctx, subject{container: c}, c.path(), resource{"colls", c.link()})
}

// ProbeFeed reads the partition key ranges of a container, and of the first range one page of the
// change feed, from now.
func (a *Account) ProbeFeed(ctx context.Context, c Container) error {
	ranges, _, err := a.Ranges(ctx, c)
	if err == nil {
		_, _, err = a.FeedPage(ctx, c, Position{Range: ranges[0].ID, Continuation: "*"})
	}
	return err
}

// ProbeLeases reads a page of the leases in a container.
func (a *Account) ProbeLeases(ctx context.Context, c Container) error {
	var t tally
	_, err := a.queryPage(ctx, &t, c, selectLeases(anyLease), []parameter{}, 1, "", func([]byte) {})
	if errors.Is(err, ErrMissing) {
		return a.refusal(subject{container: c, leases: true}, http.StatusNotFound, 0)
	}
	return err
}

// probe reads a resource and looks at the status of the answer alone.
func (a *Account) probe(ctx context.Context, about subject, path string, signed resource) error {
	var t tally
	return a.do(ctx, &t, request{about: about, method: http.MethodGet, path: path, signed: signed}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return a.refused(about, response)
		}
		return nil
	})
}
