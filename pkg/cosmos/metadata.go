package cosmos

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Description is what is needed of a container's properties.
type Description struct {
	RID          string
	PartitionKey []string      // paths
	TTL          time.Duration // defaultTtl: documents are gone after it; 0 = never, or as each document says
	Retention    time.Duration // of the feed of all versions and deletes; 0 = it is not offered
}

// properties are those of a container. azcosmos' own type lacks the changeFeedPolicy.
type properties struct {
	ID           string `json:"id"`
	RID          string `json:"_rid"`
	DefaultTTL   int64  `json:"defaultTtl"` // seconds; -1 = as each document says
	PartitionKey struct {
		Paths []string `json:"paths"`
	} `json:"partitionKey"`
	ChangeFeed struct {
		Retention int64 `json:"retentionDuration"` // minutes
	} `json:"changeFeedPolicy"`
}

// read reads the properties of a container, or of a database if the container has no ID.
func (a *client) read(ctx context.Context, t *call) (p properties, err error) {
	var raw *http.Response
	database, err := a.sdk.NewDatabase(t.about.container.Database)
	switch {
	case err != nil:
	case t.about.container.ID == "":
		var response azcosmos.DatabaseResponse
		response, err = database.Read(t.in(ctx), nil)
		raw = response.RawResponse
	default:
		var container *azcosmos.ContainerClient
		if container, err = database.NewContainer(t.about.container.ID); err == nil {
			var response azcosmos.ContainerResponse
			response, err = container.Read(t.in(ctx), nil)
			raw = response.RawResponse
		}
	}
	if err == nil {
		err = runtime.UnmarshalAsJSON(raw, &p)
	}
	if err != nil {
		return properties{}, a.failed(t, err)
	}
	return p, nil
}

// Describe reads the properties of a container. The error is ErrMissing if it does not exist.
func (a *Account) Describe(ctx context.Context, c Container) (Description, Usage, error) {
	t := call{about: subject{container: c}}
	p, err := a.read(ctx, &t)
	return Description{
		RID: p.RID, PartitionKey: p.PartitionKey.Paths,
		TTL: time.Duration(max(0, p.DefaultTTL)) * time.Second, Retention: time.Duration(max(0, p.ChangeFeed.Retention)) * time.Minute,
	}, t.Usage, err
}

// NamesOf returns the names of a database and a container by their RIDs, which lease ids hold. The error is
// ErrMissing if the account has no such container: it was deleted, or it is in another account.
func (a *Account) NamesOf(ctx context.Context, databaseRID, containerRID string) (Container, Usage, error) {
	t := call{about: subject{container: Container{databaseRID, containerRID}}, byRID: true}
	container, err := a.read(ctx, &t)
	if err != nil {
		return Container{}, t.Usage, err
	}
	t.about.container.ID = ""
	database, err := a.read(ctx, &t)
	return Container{database.ID, container.ID}, t.Usage, err
}

// Has reports whether the account has a container.
func (a *Account) Has(ctx context.Context, c Container) (bool, Usage, error) {
	_, usage, err := a.Describe(ctx, c)
	if errors.Is(err, ErrMissing) {
		return false, usage, nil
	}
	return err == nil, usage, err
}

// ProbeAccount reads the account's description, which the SDKs read before anything else. The error
// of each probe is a *Refusal if the service answered, and says what to do in every case.
func (a *Account) ProbeAccount(ctx context.Context) error {
	_, err := a.getJSON(ctx, &call{}, "/", nil, &struct{}{})
	return err
}

// ProbeContainer reads the description of a container, or of a database if c has no ID.
func (a *Account) ProbeContainer(ctx context.Context, c Container) error {
	_, err := a.read(ctx, &call{about: subject{container: c}})
	return err
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
