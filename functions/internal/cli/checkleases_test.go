package cli_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestLeasesAreLookedAtAsATickDoes: what is well-formed may still name nothing there is.
func TestLeasesAreLookedAtAsATickDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		change func(w *testworld.Shop, s map[string]string)
		line   string // check of the line
		status check.Status
		says   string
	}{
		{"all is well", func(*testworld.Shop, map[string]string) {}, "find leases", check.OK, "1 lease, 1 owned"},
		{"a processor name that nobody uses", func(_ *testworld.Shop, s map[string]string) {
			s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], "name: orders,", "name: orders, processorName: mistyped,", 1)
		}, "find leases", check.Fail, "it has no lease: lease container shop/leases holds no lease of this processor"},
		{"a lease container without leases", func(w *testworld.Shop, s map[string]string) {
			w.Container("empty", 1)
			s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], "name: orders,", "name: orders, leaseContainerId: empty,", 1)
		}, "find leases", check.Warn, "it has no lease: it never ran, or its leases are in another container"},
		{"a partition that was never checkpointed", func(w *testworld.Shop, _ map[string]string) {
			w.Put(testworld.Leases, w.LeasesOf("", testworld.OrdersHost, testworld.Orders).DotNetPKOld("0", leasefake.Fields{Owner: "worker"}))
		}, "find leases", check.Warn, "no checkpoint exists for partition 0: "},
		{"a position ahead of the feed, as a late replica shows as well", func(w *testworld.Shop, _ map[string]string) {
			w.Checkpoint(4711)
		}, "find leases", check.Warn, "partition 0 stands at 4711, and its feed has come to "},
		{"keys that no lease covers", func(w *testworld.Shop, s map[string]string) {
			w.Put(testworld.Leases, leasefake.Info(halfCovered(w, s).DotNetPrefix()))
		}, "find leases", check.Fail, `no lease covers key range "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF" to "FF": no replica reads their changes`},
		{"a lease container with another key", func(w *testworld.Shop, s map[string]string) {
			w.Create(cosmosfake.ContainerSpec{ID: "other", PartitionKey: []string{"/pk"}, Partitions: 1})
			s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], "name: orders,", "name: orders, leaseContainerId: other,", 1)
		}, "partition key", check.Fail, "its partition key is /pk; the SDKs keep leases only in a container with /id"},
		{"one that only .NET takes", func(w *testworld.Shop, s map[string]string) {
			w.Create(cosmosfake.ContainerSpec{ID: "other", PartitionKey: []string{"/partitionKey"}, Partitions: 1})
			s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], "name: orders,", "name: orders, leaseContainerId: other,", 1)
		}, "partition key", check.OK, ".NET keeps leases in such a container, Java does not"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{})
			c.change(w, p.settings)
			got, r := p.check(t)
			found := false
			for _, l := range got.Checks {
				if l.Check == c.line {
					found = true
					if l.Status != c.status || !strings.Contains(l.Detail, c.says) || (l.Status == check.OK) != (l.Fix == nil) {
						t.Errorf("%+v", l)
					}
				}
			}
			if !found || got.OK != (c.status != check.Fail) {
				t.Errorf("ok is %v\n%s", got.OK, r.Stdout)
			}
		})
	}
}

// halfCovered has check look at a processor of two ranges, one of which has a lease.
func halfCovered(w *testworld.Shop, s map[string]string) leasefake.Processor {
	w.Container("wide", 2)
	s["FEEDSCALE_PROCESSORS"] = strings.Replace(s["FEEDSCALE_PROCESSORS"], "containerId: orders", "containerId: wide", 1)
	p := w.LeasesOf("", testworld.OrdersHost, "wide")
	w.Put(testworld.Leases, p.DotNetPKOld("0", testworld.At(0)))
	return p
}
