package cosmos

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// ErrNoContainer is returned if the account has no container of that name or RID.
var ErrNoContainer = errors.New("the container does not exist")

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

// read reads the properties of a container, or of a database if the container has no ID. It returns the
// error as the transport made it.
func (a *client) read(ctx context.Context, t *call) (p properties, err error) {
	var raw *http.Response
	if c := t.about.container; c.ID == "" {
		database, err := a.sdk.NewDatabase(c.Database)
		if err != nil {
			return p, err
		}
		response, err := database.Read(t.in(ctx), nil)
		if raw = response.RawResponse; err != nil {
			return p, err
		}
	} else {
		container, err := a.container(c)
		if err != nil {
			return p, err
		}
		response, err := container.Read(t.in(ctx), nil)
		if raw = response.RawResponse; err != nil {
			return p, err
		}
	}
	return p, runtime.UnmarshalAsJSON(raw, &p)
}

// Describe reads the properties of a container.
func (a *Account) Describe(ctx context.Context, c Container) (Description, Usage, error) {
	t := call{about: subject{container: c}}
	p, err := a.read(ctx, &t)
	if err != nil {
		return Description{}, t.Usage, a.failed(&t, err)
	}
	return Description{
		RID: p.RID, PartitionKey: p.PartitionKey.Paths,
		TTL: time.Duration(max(0, p.DefaultTTL)) * time.Second, Retention: time.Duration(max(0, p.ChangeFeed.Retention)) * time.Minute,
	}, t.Usage, nil
}

// NamesOf returns the names of a database and a container by their RIDs, which lease ids hold. The
// error is ErrNoContainer if the account has no such container: it was deleted, or it is in
// another account.
func (a *Account) NamesOf(ctx context.Context, databaseRID, containerRID string) (Container, Usage, error) {
	t := call{about: subject{container: Container{databaseRID, containerRID}}, byRID: true}
	container, err := a.readIfExists(ctx, &t)
	if err != nil {
		return Container{}, t.Usage, err
	}
	t.about.container.ID = ""
	database, err := a.readIfExists(ctx, &t)
	return Container{database.ID, container.ID}, t.Usage, err
}

// Has reports whether the account has a container.
func (a *Account) Has(ctx context.Context, c Container) (bool, Usage, error) {
	t := call{about: subject{container: c}}
	_, err := a.readIfExists(ctx, &t)
	if errors.Is(err, ErrNoContainer) {
		return false, t.Usage, nil
	}
	return err == nil, t.Usage, err
}

func (a *client) readIfExists(ctx context.Context, t *call) (properties, error) {
	p, err := a.read(ctx, t)
	if err == nil {
		return p, nil
	}
	err = a.failed(t, err)
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Kind == Missing {
		err = ErrNoContainer
	}
	return properties{}, err
}

// ProbeAccount reads the account's description, which the SDKs read before anything else. The error
// of each probe is a *Refusal if the service answered, and says what to do in every case.
func (a *Account) ProbeAccount(ctx context.Context) error {
	t := call{}
	_, err := a.getJSON(ctx, &t, "/", nil, &struct{}{})
	return err
}

// ProbeContainer reads the description of a container, or of a database if c has no ID.
func (a *Account) ProbeContainer(ctx context.Context, c Container) error {
	t := call{about: subject{container: c}}
	if _, err := a.read(ctx, &t); err != nil {
		return a.failed(&t, err)
	}
	return nil
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
