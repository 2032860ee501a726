package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestEachConsumerOfATopicGetsTheDecision does what a user does: stand-ins, a poll, and a consumer
// for each subscription, with the setting that emulate prints.
func TestEachConsumerOfATopicGetsTheDecision(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testworld.Must(t, os.WriteFile(filepath.Join(folder, "world.yaml"), []byte("topics:\n- {name: archive, subscriptions: [{name: all, maxDeliveryCount: 3}]}\n"), 0o600))
	emulate, settings := emulating(t, folder, false, "--container", "shop/orders", "--container", "shop/leases", "--file", "world.yaml",
		"--topic", "decisions", "--subscription", "decisions/Subscriptions/kubernetes", "--subscription", "DECISIONS/subscriptions/audit:sessions")
	printed := func(before string) map[string]string {
		t.Helper()
		with := maps.Clone(settings)
		_, with["FEEDSCALE_EVENTS"], _ = strings.Cut(strings.TrimSpace(emulate.stdout.await(t, before)), "FEEDSCALE_EVENTS=")
		return with
	}
	publishing := printed("# to publish: ")
	kubernetes := printed("# to consume: ")
	audit := printed("# to consume --sessions: ")
	printed("servicebus:SERVICEBUS/archive/Subscriptions/all")

	if r := command(t, folder, publishing, "poll"); r.Status != 0 {
		t.Fatalf("poll: status %d: %s", r.Status, r.Stderr)
	}
	if r := command(t, folder, publishing, "check"); !strings.Contains(r.Stdout, "the topic exists and can be sent to; nothing was sent") {
		t.Errorf("check: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	first := start(t, folder, kubernetes, "consume")
	second := start(t, folder, audit, "consume", "--sessions")
	for _, consumer := range []running{first, second} {
		consumer.stdout.await(t, `"subject":"orders"`)
		consumer.interrupt(t)
	}
	for _, verb := range []string{"poll", "check", "run"} {
		if r := command(t, folder, kubernetes, verb); r.Status != 2 || !strings.Contains(r.Stderr, "allowed is servicebus:SERVICEBUS/decisions") {
			t.Errorf("%s to a subscription: status %d: %s", verb, r.Status, r.Stderr)
		}
	}
	emulate.interrupt(t)
}
