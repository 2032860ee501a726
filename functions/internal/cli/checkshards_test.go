package cli_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestTheQueueOfShardsIsTriedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		queue  servicebusfake.QueueSpec
		forbid bool   // to receive
		want   remedy // no check: all holds
	}{
		{"it is there", servicebusfake.QueueSpec{Name: "shards"}, false, remedy{}},
		{"it is not there", servicebusfake.QueueSpec{Name: "other"}, false, remedy{"/shards", "send", `queue or topic "shards" does not exist`, "az servicebus queue create"}},
		{"nobody may take from it", servicebusfake.QueueSpec{Name: "shards"}, true, remedy{"/shards", "receive", "nobody would poll its shards", "the Send and the Listen right, or give the identity the role"}},
		{"it requires sessions", servicebusfake.QueueSpec{Name: "shards", RequiresSession: true}, false, remedy{"/shards", "receive", "requires sessions", "without sessions"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, p := checking(t, cosmosfake.Options{})
			testworld.Must(t, w.Namespace.CreateQueue(c.queue))
			p.settings["FEEDSCALE_SHARD_QUEUE"], p.settings["FEEDSCALE_SHARDS"] = "shards", p.settings["SERVICEBUS"]
			w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if !c.forbid || r.Op != servicebusfake.OpAttach || r.Entity != "shards" || !r.Receiver {
					return nil
				}
				return &servicebusfake.Answer{Condition: "amqp:unauthorized-access", Keep: true}
			})
			got, r := p.check(t)
			if c.want.check != "" {
				wantOnly(t, got, c.want)
			} else if !got.OK || !strings.Contains(r.Stdout, "the queue can be received from") {
				t.Errorf("got %s", r.Stdout)
			}
		})
	}
}
