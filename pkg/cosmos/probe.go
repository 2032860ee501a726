package cosmos

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
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

// ProbeLeases reads one page, with one item, of the leases in a container. The error is ErrMissing
// where the container does not exist.
func (a *Account) ProbeLeases(ctx context.Context, c Container) error {
	var t tally
	about := subject{c, true}
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
		return a.failed(about, &t, err)
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
		return a.refused(about, response)
	}
	return nil
}
