package console_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/changefeed"
)

// found is a lease container with a processor for each thing that can be said of one.
func found() discover.Report {
	live := func(name string) discover.Owner {
		return discover.Owner{Name: name, Partitions: 1, RenewedSeconds: new(int64(3)), Live: true}
	}
	many := discover.Processor{
		Prefix: "many", ProcessorName: new("many"), AccountHost: new("shop.documents.azure.com"), ContainerID: new("orders"), DatabaseID: new("shop"),
		Monitored: "shop/orders", Formats: []changefeed.Format{".NET PK", ".NET EPK"}, Modes: []string{"incremental"}, Partitions: 8,
		NewestSeconds: new(int64(3)), OldestSeconds: new(int64(9000)),
		Entry: &discover.Entry{Name: "many", Connection: "COSMOS", DatabaseID: "shop", ContainerID: "orders", ProcessorName: "many"},
	}
	many.Owners = append(many.Owners,
		discover.Owner{Name: "dead", Partitions: 1, RenewedSeconds: new(int64(9000))}, discover.Owner{Name: "unseen", Partitions: 1})
	for n := range 6 {
		many.Owners = append(many.Owners, live(fmt.Sprintf("worker-%d", n)))
	}
	return discover.Report{LeaseContainer: "shop/leases", Account: "shop.documents.azure.com", RequestCharge: 12.34, Requests: 3, Processors: []discover.Processor{
		many,
		{
			Prefix: "nobody", ProcessorName: new(""), AccountHost: new("SHOP.documents.azure.com"), ContainerID: new("my orders"), DatabaseID: new("shop"),
			Monitored: "shop/my orders", Formats: []changefeed.Format{"Java EPK"}, Modes: []string{"all versions and deletes"}, Partitions: 1,
			Note:  new("the same host,\nin another case"),
			Entry: &discover.Entry{Name: "my-orders", Connection: "COSMOS", DatabaseID: "shop", ContainerID: "my orders", AccountHost: "SHOP.documents.azure.com"},
		},
		{
			Prefix: "gone", Head: "gone.documents.azure.com", Monitored: "q0oIAA==/q0oIALS6YvQ=", Partitions: 1, Owners: []discover.Owner{live("wor\x1b[31mker\n")},
			NewestSeconds: new(int64(3)), OldestSeconds: new(int64(3)),
			Note: new("account shop.documents.azure.com has no such container"),
		},
		{
			Prefix: "unread", Head: "unread", Monitored: "unread", Partitions: 2, Error: new("the monitored container could not be looked up: 403\nForbidden"),
			Unreadable: []discover.UnreadableLease{{Lease: "unread..\x1b[31m0", Error: "its LeaseToken\nis missing"}},
		},
	}}
}

func TestLeasesAreATableWhatCannotBeReadAndLinesToPaste(t *testing.T) {
	t.Parallel()
	golden(t, "leases", func(w io.Writer, style console.Style) error { return console.WriteLeases(w, found(), style) })
}

func TestWhereNothingCanBePastedThereIsNoListToPasteInto(t *testing.T) {
	t.Parallel()
	golden(t, "leases-left-over", func(w io.Writer, style console.Style) error {
		r := found()
		r.Processors = r.Processors[2:3]
		return console.WriteLeases(w, r, style)
	})
}

func TestAnEmptyLeaseContainerIsOneLine(t *testing.T) {
	t.Parallel()
	golden(t, "leases-none", func(w io.Writer, style console.Style) error {
		return console.WriteLeases(w, discover.Report{LeaseContainer: "shop/leases", Account: "127.0.0.1", RequestCharge: 2.84}, style)
	})
}
