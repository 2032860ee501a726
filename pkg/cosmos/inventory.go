package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// ErrNoContainer is returned where the account has no container of that name or RID.
var ErrNoContainer = errors.New("the container does not exist")

// FindLeases reads every lease document of a container, of whichever processor: every page,
// projected to changefeed.LeaseFields. The error is ErrMissing where the container does not exist;
// every other says what to do.
func (a *Account) FindLeases(ctx context.Context, c Container) ([]changefeed.FoundLease, Usage, error) {
	var found []changefeed.FoundLease
	usage, err := a.query(ctx, c, selectLeases(anyLease), []parameter{}, func(item []byte) {
		found = append(found, changefeed.ParseFoundLease(item))
	})
	return found, usage, err
}

// NamesOf returns the names of a database and a container by their RIDs, which lease ids hold. The
// error is ErrNoContainer where the account has no such container: it was deleted, or it is in
// another account.
func (a *Account) NamesOf(ctx context.Context, databaseRID, containerRID string) (Container, Usage, error) {
	byRID := Container{databaseRID, containerRID}
	// A request by RID is signed with the last RID alone, in lower case.
	id, usage, err := a.idOf(ctx, byRID, byRID.path(), resource{"colls", strings.ToLower(containerRID)})
	if err != nil {
		return Container{}, usage, err
	}
	database, more, err := a.idOf(ctx, byRID, "/dbs/"+url.PathEscape(databaseRID), resource{"dbs", strings.ToLower(databaseRID)})
	usage.Add(more)
	if err != nil {
		return Container{}, usage, err
	}
	return Container{database, id}, usage, nil
}

// Has reports whether the account has a container.
func (a *Account) Has(ctx context.Context, c Container) (bool, Usage, error) {
	_, usage, err := a.idOf(ctx, c, c.path(), resource{"colls", c.link()})
	if errors.Is(err, ErrNoContainer) {
		return false, usage, nil
	}
	return err == nil, usage, err
}

// idOf reads the id of a container or of its database, at the path given.
func (a *Account) idOf(ctx context.Context, c Container, path string, signed resource) (id string, usage Usage, err error) {
	var t tally
	about := subject{container: c}
	err = a.do(ctx, &t, request{about: about, method: http.MethodGet, path: path, signed: signed}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			if refusal := a.refused(about, response); refusal.Kind != Missing {
				return refusal
			}
			return ErrNoContainer
		}
		var properties struct {
			ID string `json:"id"`
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = json.Unmarshal(body, &properties)
		}
		if err != nil || properties.ID == "" {
			return fmt.Errorf("account %s describes container %s without an id: is that endpoint a Cosmos DB account?", a.host, c)
		}
		id = properties.ID
		return nil
	})
	return id, t.spent(), err
}
