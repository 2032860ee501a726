package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// leases is what a processor keeps in its lease container: a lease for each partition, .info, which
// says that the first of them were created, and .lock, which is held while they are.
type leases struct {
	container *azcosmos.ContainerClient
	processor leasefake.Processor
	prefix    string // of the ids: {processorName}{host}_{database RID}_{container RID}
	host      string // name of this host
}

// errLost says that a lease belongs to another host by now, or is no more.
var errLost = errors.New("the lease is lost")

// openLeases finds the leases of a processor. The RIDs keep its leases apart from those of a
// container of the same name that was deleted.
func openLeases(ctx context.Context, o Options) (*leases, error) {
	endpoint, err := url.Parse(o.Account.endpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the account: %w", err)
	}
	processor, err := leasefake.Processor{
		Name: o.ProcessorName, Host: endpoint.Hostname(), Database: o.Monitored.Database, Container: o.Monitored.ID,
	}.Resolve(ctx, o.Account.cosmos)
	if err != nil {
		return nil, failed(err, "finding container %s", o.Monitored)
	}
	container, err := o.Account.cosmos.NewContainer(o.Leases.Database, o.Leases.ID)
	if err != nil {
		return nil, err
	}
	return &leases{container: container, processor: processor, prefix: processor.DotNetPrefix(), host: o.Host}, nil
}

// status is the HTTP status of an error of azcosmos, 0 where it has none.
func status(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}

// failed says in one line what went wrong, where azcosmos would show the whole answer.
func failed(err error, doing string, args ...any) error {
	doing = fmt.Sprintf(doing, args...)
	if code := status(err); code != 0 {
		return fmt.Errorf("%s: the account answered with status %d", doing, code)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// initialized reports whether the leases were created before.
func (l *leases) initialized(ctx context.Context) (bool, error) {
	id := l.markerID()
	_, err := l.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	switch {
	case err == nil:
		return true, nil
	case status(err) == http.StatusNotFound:
		return false, nil
	default:
		return false, failed(err, "reading %s", id)
	}
}

func (l *leases) markerID() string { return leasefake.Info(l.prefix)["id"].(string) }

func (l *leases) markInitialized(ctx context.Context) error {
	_, err := l.create(ctx, l.markerID(), leasefake.Info(l.prefix))
	return err
}

// lockTime is after how long the lock of a host that died in the middle expires: the SDK's default.
const lockTime = 30 * time.Second

func (l *leases) lockDocument() (id string, document map[string]any) {
	document = leasefake.Lock(l.prefix, lockTime)
	return document["id"].(string), document
}

// lock tries to become the host that creates the leases. The tag is for unlock.
func (l *leases) lock(ctx context.Context) (tag azcore.ETag, ok bool, err error) {
	id, document := l.lockDocument()
	tag, err = l.create(ctx, id, document)
	return tag, tag != "" && err == nil, err
}

// unlock removes the lock that the tag was given for, and no other.
func (l *leases) unlock(ctx context.Context, tag azcore.ETag) error {
	id, _ := l.lockDocument()
	_, err := l.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(id), id, &azcosmos.ItemOptions{IfMatchEtag: &tag})
	if code := status(err); code == http.StatusNotFound || code == http.StatusPreconditionFailed {
		return nil // it has expired, and may be another host's
	}
	if err != nil {
		return failed(err, "removing %s", id)
	}
	return nil
}

// create writes a document that does not exist yet. The tag is empty where it does.
func (l *leases) create(ctx context.Context, id string, document any) (azcore.ETag, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return "", failed(err, "creating %s", id)
	}
	response, err := l.container.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), body, nil)
	switch {
	case err == nil:
		return response.ETag, nil
	case status(err) == http.StatusConflict:
		return "", nil
	default:
		return "", failed(err, "creating %s", id)
	}
}

// add makes sure that there is a lease of that id; ok is false where there was one before. The
// lease that it returns can be acquired.
func (l *leases) add(ctx context.Context, wanted leasefake.DotNetLease) (added leasefake.DotNetLease, ok bool, err error) {
	tag, err := l.create(ctx, wanted.ID, wanted)
	wanted.ETag = string(tag)
	return wanted, tag != "", err
}

// list reads the leases of the processor.
func (l *leases) list(ctx context.Context) ([]leasefake.DotNetLease, error) {
	pager := l.container.NewQueryItemsPager("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@prefix", Value: l.prefix + ".."}}})
	var all []leasefake.DotNetLease
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, failed(err, "listing the leases %s", l.prefix)
		}
		for _, item := range page.Items {
			var next leasefake.DotNetLease
			if err := json.Unmarshal(item, &next); err != nil {
				return nil, fmt.Errorf("reading a lease of %s: %w", l.prefix, err)
			}
			all = append(all, next)
		}
	}
	return all, nil
}

// read reads a lease as it stands; errLost where it is no more.
func (l *leases) read(ctx context.Context, id string) (leasefake.DotNetLease, error) {
	response, err := l.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if status(err) == http.StatusNotFound {
		return leasefake.DotNetLease{}, errLost
	}
	var current leasefake.DotNetLease
	if err == nil {
		err = json.Unmarshal(response.Value, &current)
	}
	if err != nil {
		return leasefake.DotNetLease{}, failed(err, "reading lease %s", id)
	}
	return current, nil
}

// conflictRetries is how often an update is repeated that another one came before
// (DocumentServiceLeaseUpdaterCosmos).
const conflictRetries = 5

// update changes a lease, under the condition that nobody else has since it was read. Where
// somebody has, change is applied to what stands there now; change says with errLost that it does
// not fit any more.
func (l *leases) update(ctx context.Context, current leasefake.DotNetLease, change func(*leasefake.DotNetLease) error) (leasefake.DotNetLease, error) {
	for range conflictRetries + 1 {
		if err := change(&current); err != nil {
			return leasefake.DotNetLease{}, err
		}
		current.Stamp(time.Now())
		tag := azcore.ETag(current.ETag)
		body, err := json.Marshal(current)
		if err != nil {
			return leasefake.DotNetLease{}, failed(err, "updating lease %s", current.ID)
		}
		response, err := l.container.ReplaceItem(ctx, azcosmos.NewPartitionKeyString(current.ID), current.ID, body, &azcosmos.ItemOptions{IfMatchEtag: &tag})
		switch {
		case err == nil:
			current.ETag = string(response.ETag)
			return current, nil
		case status(err) == http.StatusNotFound:
			return leasefake.DotNetLease{}, errLost
		case status(err) != http.StatusPreconditionFailed:
			return leasefake.DotNetLease{}, failed(err, "updating lease %s", current.ID)
		}
		if current, err = l.read(ctx, current.ID); err != nil {
			return leasefake.DotNetLease{}, err
		}
	}
	return leasefake.DotNetLease{}, errLost
}

// acquire makes this host the owner, unless another one was quicker.
func (l *leases) acquire(ctx context.Context, wanted leasefake.DotNetLease) (leasefake.DotNetLease, error) {
	before := ""
	if wanted.Owner != nil {
		before = *wanted.Owner
	}
	return l.update(ctx, wanted, func(current *leasefake.DotNetLease) error {
		if !current.OwnedBy(before) {
			return errLost
		}
		current.Owner = &l.host
		return nil
	})
}

// renew tells the other hosts that the owner lives. It reads the lease first, since a checkpoint
// has most likely changed it.
func (l *leases) renew(ctx context.Context, id string) error {
	current, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	_, err = l.update(ctx, current, l.mine(func(*leasefake.DotNetLease) {}))
	return err
}

// release gives the lease up.
func (l *leases) release(ctx context.Context, id string) error {
	current, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	_, err = l.update(ctx, current, l.mine(func(current *leasefake.DotNetLease) { current.Owner = nil }))
	return err
}

// rewind sets the continuation back.
func (l *leases) rewind(ctx context.Context, id string, continuation *string) error {
	current, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	_, err = l.update(ctx, current, l.mine(func(current *leasefake.DotNetLease) { current.Continuation = continuation }))
	return err
}

// checkpoint notes how far the partition was processed.
func (l *leases) checkpoint(ctx context.Context, owned leasefake.DotNetLease, continuation string) (leasefake.DotNetLease, error) {
	return l.update(ctx, owned, l.mine(func(current *leasefake.DotNetLease) { current.Continuation = &continuation }))
}

// mine applies a change only while this host owns the lease.
func (l *leases) mine(change func(*leasefake.DotNetLease)) func(*leasefake.DotNetLease) error {
	return func(current *leasefake.DotNetLease) error {
		if !current.OwnedBy(l.host) {
			return errLost
		}
		change(current)
		return nil
	}
}

// remove deletes a lease, if it still exists.
func (l *leases) remove(ctx context.Context, id string) error {
	_, err := l.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil && status(err) != http.StatusNotFound {
		return failed(err, "removing lease %s", id)
	}
	return nil
}
