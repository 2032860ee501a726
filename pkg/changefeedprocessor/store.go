package changefeedprocessor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

var (
	errMissing = final{errors.New("the document does not exist")}
	errExists  = final{errors.New("the document exists")}
	errChanged = final{errors.New("the document was changed by another host")}
)

// leases is what a host does to the leases of its processor, and to the documents beside them.
type leases struct {
	container *azcosmos.ContainerClient
	changefeed.Scheme
}

// list returns the documents whose ids have a prefix.
func (s *leases) list(ctx context.Context, prefix string) (documents [][]byte, err error) {
	pager := s.container.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@prefix", Value: prefix}}})
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the leases %s: %w", prefix, known(err))
		}
		documents = append(documents, page.Items...)
	}
	return documents, nil
}

// write creates a document if tag is "", deletes it if document is nil, and otherwise replaces it. It
// changes the revision that the tag is of, and no other.
func (s *leases) write(ctx context.Context, key, id string, document []byte, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	of, matching := azcosmos.NewPartitionKeyString(key), &azcosmos.ItemOptions{IfMatchEtag: (*azcore.ETag)(&tag)}
	var response azcosmos.ItemResponse
	var err error
	switch {
	case tag == "":
		response, err = s.container.CreateItem(ctx, of, document, nil)
	case document == nil:
		response, err = s.container.DeleteItem(ctx, of, id, matching)
	default:
		response, err = s.container.ReplaceItem(ctx, of, id, document, matching)
	}
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", id, known(err))
	}
	return string(response.ETag), nil
}

// known returns the error by which callers decide, or else the given one in brief.
func known(err error) error {
	switch status, sub := statusOf(err); {
	case status == http.StatusNotFound && sub != 1002 && sub != 1003: // 1002: no such session yet; 1003: no such container
		return errMissing
	case status == http.StatusConflict:
		return errExists
	case status == http.StatusPreconditionFailed:
		return errChanged
	default:
		return brief(err)
	}
}

// all returns the leases of the processor, of several with one token the newest: a lease container whose
// partition key is a GUID can have several. bad are the errors of those that cannot be read.
func (s *leases) all(ctx context.Context) (all []*changefeed.Record, bad []error, err error) {
	documents, err := s.list(ctx, s.Prefix+"..")
	if err != nil {
		return nil, nil, err
	}
	newest := map[string]*changefeed.Record{}
	for _, document := range documents {
		l, err := changefeed.ReadRecord(document)
		switch last, twice := newest[l.Token]; {
		case strings.Contains(strings.TrimPrefix(l.ID, s.Prefix+".."), ".."): // of a container whose name begins like this one's, and has dots
		case err != nil:
			bad = append(bad, fmt.Errorf("lease %s: %w", l.ID, err))
		case !twice || l.Newer(last.Lease):
			newest[l.Token] = l
		}
	}
	byID := func(a, b *changefeed.Record) int { return strings.Compare(a.ID, b.ID) }
	return slices.SortedFunc(maps.Values(newest), byID), bad, nil
}

// put writes a lease over the revision that it has the tag of, or deletes that.
func (s *leases) put(ctx context.Context, l *changefeed.Record, remove bool) error {
	document, err := l.Document()
	if err != nil {
		return err
	}
	if remove {
		document = nil
	}
	l.ETag, err = s.write(ctx, l.Key(), l.ID, document, l.ETag)
	return err
}

// again reads a lease as it is now.
func (s *leases) again(ctx context.Context, l *changefeed.Record) (*changefeed.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := s.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(l.Key()), l.ID, nil)
	if err = known(err); errors.Is(err, errMissing) {
		return nil, ErrLeaseLost
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.ID, err)
	}
	now, err := changefeed.ReadRecord(response.Value)
	if err != nil {
		return nil, final{err}
	}
	return now, nil
}

// conflicts is how often an update is tried if another host's comes first
// (DocumentServiceLeaseUpdaterCosmos.cs).
const conflicts = 5

// update changes a lease while its owner is the expected one, and nobody changed it since it was read.
// If somebody did, what is there now is changed. A nil change deletes it. The error is ErrLeaseLost if
// another host owns it.
func (s *leases) update(ctx context.Context, l *changefeed.Record, owner string, change func(*changefeed.Record)) (*changefeed.Record, error) {
	for range conflicts {
		if l.Owner != owner {
			return nil, ErrLeaseLost
		}
		next := l.Copy()
		if change != nil {
			change(next)
			s.Stamp(next, time.Now())
		}
		err := s.put(ctx, next, change == nil)
		switch {
		case err == nil || errors.Is(err, errMissing) && change == nil:
			return next, nil
		case errors.Is(err, errMissing):
			return nil, ErrLeaseLost
		case !errors.Is(err, errChanged):
			return nil, err
		}
		if l, err = s.again(ctx, l); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("updating %s: %w", l.ID, errChanged)
}
