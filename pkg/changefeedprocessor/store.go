package changefeedprocessor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// store keeps lease documents: in a container or, for a watch, in memory. Its errors wrap those below
// if they fit.
type store interface {
	list(ctx context.Context, prefix string) ([][]byte, error)
	read(ctx context.Context, key, id string) ([]byte, error)
	// write creates a document if tag is "", deletes it if document is nil, and otherwise replaces it. It
	// changes the revision that the tag is of, and no other.
	write(ctx context.Context, key, id string, document []byte, tag string) (string, error)
}

var (
	errMissing = final{errors.New("the document does not exist")}
	errExists  = final{errors.New("the document exists")}
	errChanged = final{errors.New("the document was changed by another host")}
)

// containerStore is a lease container.
type containerStore struct{ *azcosmos.ContainerClient }

func (s containerStore) list(ctx context.Context, prefix string) (documents [][]byte, err error) {
	pager := s.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
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

func (s containerStore) read(ctx context.Context, key, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := s.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), id, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, known(err))
	}
	return response.Value, nil
}

func (s containerStore) write(ctx context.Context, key, id string, document []byte, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	of, matching := azcosmos.NewPartitionKeyString(key), &azcosmos.ItemOptions{IfMatchEtag: (*azcore.ETag)(&tag)}
	var response azcosmos.ItemResponse
	var err error
	switch {
	case tag == "":
		response, err = s.CreateItem(ctx, of, document, nil)
	case document == nil:
		response, err = s.DeleteItem(ctx, of, id, matching)
	default:
		response, err = s.ReplaceItem(ctx, of, id, document, matching)
	}
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", id, known(err))
	}
	return string(response.ETag), nil
}

// known is the error of a store that an answer stands for.
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

// memoryStore keeps leases for one process.
type memoryStore struct {
	mu        sync.Mutex
	written   int
	documents map[string]revision // by id
}

// revision is a document as it was written last.
type revision struct {
	tag  string
	text []byte // with its _etag
}

func (s *memoryStore) list(_ context.Context, prefix string) (documents [][]byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.documents {
		if strings.HasPrefix(id, prefix) {
			documents = append(documents, d.text)
		}
	}
	return documents, nil
}

func (s *memoryStore) read(_ context.Context, _, id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, exists := s.documents[id]
	if !exists {
		return nil, errMissing
	}
	return d.text, nil
}

func (s *memoryStore) write(_ context.Context, _, id string, document []byte, tag string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now, exists := s.documents[id]; {
	case exists && tag == "":
		return "", errExists
	case !exists && tag != "":
		return "", errMissing
	case now.tag != tag:
		return "", errChanged
	}
	if document == nil {
		delete(s.documents, id)
		return "", nil
	}
	s.written++
	tag = strconv.Itoa(s.written)
	s.documents[id] = revision{tag, slices.Concat([]byte(`{"_etag":"`+tag+`",`), document[1:])} // none is {}
	return tag, nil
}

// leases is what a host does to the leases of its processor.
type leases struct {
	store
	changefeed.Scheme
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
	document, err := s.read(ctx, l.Key(), l.ID)
	if errors.Is(err, errMissing) {
		return nil, ErrLeaseLost
	}
	if err != nil {
		return nil, err
	}
	now, err := changefeed.ReadRecord(document)
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
