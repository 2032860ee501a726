package cosmosfake_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestDatabasesAndContainersAreListedInPages reads them as the SDKs do: azcosmos by a query, .NET's
// iterators without a query text by a feed (azure-cosmos-dotnet-v3,
// CosmosClient.GetDatabaseQueryIterator).
func TestDatabasesAndContainersAreListedInPages(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{})
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("d%02d", i)
		testworld.Must(t, s.CreateDatabase(id))
		testworld.Must(t, s.CreateContainer("d00", byID(id)))
		want = append(want, id)
	}
	client := sdk(t, s, nil)
	var queried []string
	pages := 0
	for pager := client.NewQueryDatabasesPager("SELECT * FROM root r WHERE r.id >= 'd00'", nil); pager.More(); pages++ {
		page, err := pager.NextPage(t.Context())
		testworld.Must(t, err)
		for _, d := range page.Databases {
			queried = append(queried, d.ID)
		}
	}
	if pages != 1 || !containsAll(queried, want) {
		t.Errorf("%d pages of databases without a size: %v", pages, queried)
	}
	database, err := client.NewDatabase("d00")
	testworld.Must(t, err)
	queried, pages = nil, 0
	for pager := database.NewQueryContainersPager("SELECT * FROM c", &azcosmos.QueryContainersOptions{}); pager.More(); pages++ {
		page, err := pager.NextPage(t.Context())
		testworld.Must(t, err)
		for _, c := range page.Containers {
			queried = append(queried, c.ID)
		}
	}
	if !slices.Equal(queried, want) {
		t.Errorf("containers: %v", queried)
	}

	c := newClient(t, s)
	for _, path := range []string{"dbs", "dbs/d00/colls"} {
		var read []string
		h, sizes := headers{"x-ms-max-item-count", "10"}, []int{}
		for {
			r := c.do("GET", path, h, nil)
			c.expect(r, "200")
			var page struct {
				Databases, DocumentCollections []struct{ ID string }
				Count                          int `json:"_count"`
			}
			testworld.Must(t, json.Unmarshal(r.body, &page))
			items := append(page.Databases, page.DocumentCollections...)
			for _, one := range items {
				read = append(read, one.ID)
			}
			if page.Count != len(items) || r.header.Get("x-ms-item-count") != fmt.Sprint(len(items)) {
				t.Errorf("%s: %d items, _count %d, %v", path, len(items), page.Count, r.header)
			}
			sizes = append(sizes, len(items))
			next := r.header.Get("x-ms-continuation")
			if next == "" {
				break
			}
			h = headers{"x-ms-max-item-count", "10", "x-ms-continuation", next}
		}
		if len(sizes) != 3 || sizes[0] != 10 || !containsAll(read, want) {
			t.Errorf("%s in pages of %v: %v", path, sizes, read)
		}
	}
	c.expect(c.do("GET", "dbs", headers{"x-ms-continuation", "nonsense"}, nil), "400")
}

func containsAll(list, want []string) bool {
	return !slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(list, id) })
}
