package cli_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestCheckTriesThroughputWithoutWritingIt looks at what is said of a container by the mode.
func TestCheckTriesThroughputWithoutWritingIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, mode, container string
		want                  []string // status and check
		says                  string
	}{
		{"off says nothing", "off", "views", nil, ""},
		{"recommend reads", "recommend", "views", []string{"ok read throughput"}, "the throughput can be read: 700 RU/s"},
		{"apply reads", "apply", "views", []string{"ok read throughput"}, "the throughput can be read: 700 RU/s"},
		{"a container without any", "apply", "orders", []string{"fail read throughput"}, "has no throughput"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{})
			w.Create(cosmosfake.ContainerSpec{ID: "views", PartitionKey: []string{"/id"}, Throughput: 700})
			p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "}]}", ", throughput: {mode: "+c.mode+", containers: [{container: "+c.container+", ruPerReplica: 500}]}}]}", 1)
			before, err := w.Client().ReadThroughput(t.Context(), cosmos.Container{Database: testworld.Database, ID: "views"})
			testworld.Must(t, err)
			got, _ := p.check(t)
			var lines []string
			said := ""
			for _, l := range got.Checks {
				if strings.HasSuffix(l.Check, " throughput") {
					lines = append(lines, string(l.Status)+" "+l.Check)
					said += l.Detail
				} else if l.Status == check.Fail {
					t.Errorf("%+v", l)
				}
			}
			if strings.Join(lines, ", ") != strings.Join(c.want, ", ") || !strings.Contains(said, c.says) {
				t.Errorf("%q, said %s; want %q that say %s", lines, said, c.want, c.says)
			}
			_, err = w.Client().ReplaceThroughput(t.Context(), cosmos.Container{Database: testworld.Database, ID: "views"}, before, 800)
			testworld.Must(t, err) // its ETag is what it was
		})
	}
}
