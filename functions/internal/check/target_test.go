package check

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/actions"
)

func TestATriggerOnTheProcessorsSignalQueueAsksFeedscale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, queue, signalQueue string
		want                     bool
	}{
		{"on its signal queue", "orders-replicas", "orders-replicas", true},
		{"in another spelling", "Orders-Replicas", "orders-replicas", true},
		{"on another queue", "orders", "orders-replicas", false},
		{"where it has none", "", "", false},
	} {
		trigger := actions.Trigger{Type: "azure-servicebus", Metadata: map[string]string{"queueName": c.queue}}
		if got := asksFeedscale(trigger, "orders", c.signalQueue); got != c.want {
			t.Errorf("%s: %v", c.rule, got)
		}
	}
}
