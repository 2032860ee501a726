package cosmosfake_test

import (
	"fmt"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// BenchmarkFeedRead is one page of one document out of many, client and connection included.
func BenchmarkFeedRead(b *testing.B) {
	for _, documents := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(documents, " documents"), func(b *testing.B) {
			s, err := cosmosfake.Start(cosmosfake.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			if err := s.CreateDatabase("db"); err != nil {
				b.Fatal(err)
			}
			if err := s.CreateContainer("db", byID("c")); err != nil {
				b.Fatal(err)
			}
			for i := range documents {
				if err := s.Upsert("db", "c", doc(fmt.Sprint(i))); err != nil {
					b.Fatal(err)
				}
			}
			c := newClient(b, s)
			h := headers{"A-IM", "Incremental Feed", "x-ms-max-item-count", "1", "If-None-Match", fmt.Sprintf(`"%d"`, documents/2)}
			b.ResetTimer()
			for range b.N {
				c.expect(c.do("GET", "dbs/db/colls/c/docs", h, nil), "200")
			}
		})
	}
}

// BenchmarkUpsert is the write path of load generators.
func BenchmarkUpsert(b *testing.B) {
	s, err := cosmosfake.Start(cosmosfake.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if err := s.CreateDatabase("db"); err != nil {
		b.Fatal(err)
	}
	if err := s.CreateContainer("db", byID("c")); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		if err := s.Upsert("db", "c", doc(fmt.Sprint(i%100_000), "n", i)); err != nil {
			b.Fatal(err)
		}
	}
}
