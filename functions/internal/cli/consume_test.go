package cli_test

import (
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// startQueue starts a namespace with a queue, and returns the settings to consume from it.
func startQueue(t *testing.T) (*servicebusfake.Server, map[string]string) {
	t.Helper()
	bus := testworld.StartNamespace(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue}}})
	return bus, map[string]string{"SERVICEBUS": bus.ConnectionString(), "FEEDSCALE_EVENTS": "servicebus:SERVICEBUS/" + testworld.Queue}
}

// TestEveryMistakeOfConsumeIsListedAndNothingIsStarted runs in processes of its own, since client-go
// looks for a cluster in the environment of a process, and has one log for all of it.
func TestEveryMistakeOfConsumeIsListedAndNothingIsStarted(t *testing.T) {
	t.Parallel()
	bus, good := startQueue(t)
	bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		t.Errorf("the namespace was asked to %s", r.Op)
		return nil
	})
	for _, c := range []struct {
		rule     string
		settings map[string]string
		args     []string
		says     []string
	}{
		{"no queue", nil, nil, []string{"FEEDSCALE_EVENTS: names no queue to consume from; allowed are servicebus:SETTING/QUEUE"}},
		{"events that go to standard output", map[string]string{"FEEDSCALE_EVENTS": "stdout:"}, nil, []string{"FEEDSCALE_EVENTS: names no queue to consume from"}},
		{"all of them at once", map[string]string{"FEEDSCALE_EVENTS": "servicebus:MISSING/q", "FEEDSCALE_LOG_LEVEL": "loud"},
			[]string{"--action", "dance", "--url", "https://receiver.example", "--concurrency", "0"}, []string{
				"FEEDSCALE_EVENTS: the setting MISSING is missing",
				"FEEDSCALE_LOG_LEVEL: ",
				`--concurrency is "0"; allowed are whole numbers from 1 to 1024`,
				"--url: needs --action webhook",
				`--action is "dance"; allowed are stdout, webhook, kubernetes and containerapp`,
			}},
		{"a webhook without a URL", good, []string{"--action", "webhook"}, []string{"--url: is missing"}},
		{"a URL that is none", good, []string{"--action", "webhook", "--url", "receiver"}, []string{"--url: the URL of the webhook is not an address"}},
		{"a secret that is none", map[string]string{"SERVICEBUS": good["SERVICEBUS"], "FEEDSCALE_EVENTS": good["FEEDSCALE_EVENTS"], "FEEDSCALE_WEBHOOK_SECRET": "hidden"},
			[]string{"--action", "webhook", "--url", "https://receiver.example"}, []string{"FEEDSCALE_WEBHOOK_SECRET: the secret of the webhook is not one; allowed is base64 of 24 to 64 bytes"}},
		{"a secret that is none, and no URL", map[string]string{"FEEDSCALE_WEBHOOK_SECRET": "hidden"}, []string{"--action", "webhook"},
			[]string{"FEEDSCALE_EVENTS: names no queue", "--url: is missing", "FEEDSCALE_WEBHOOK_SECRET: the secret"}},
		{"an endpoint that is none, and no queue", nil, []string{"--action", "containerapp", "--arm-endpoint", "http://management.usgovcloudapi.net"},
			[]string{"FEEDSCALE_EVENTS: names no queue", "--arm-endpoint: is not that of an Azure Resource Manager; allowed is https://HOST or https://HOST:PORT"}},
		{"a kubeconfig that is not there", good, []string{"--action", "kubernetes", "--kubeconfig", "nowhere"}, []string{"finding the cluster", "nowhere"}},
		{"no cluster at all", good, []string{"--action", "kubernetes"}, []string{"finding the cluster, run in a pod of it or name a kubeconfig"}},
		{"a flag of another action", good, []string{"--kubeconfig", "f", "--context", "c", "--arm-endpoint", "https://e"}, []string{"--kubeconfig: needs --action kubernetes", "--context: ", "--arm-endpoint: needs --action containerapp"}},
		{"an argument", good, []string{"orders"}, []string{`unexpected argument "orders"`}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := feedscale{settings: c.settings}.apart(t, append([]string{"consume"}, c.args...)...)
			if r.Status != 2 || r.Stdout != "" {
				t.Errorf("status %d, printed %s", r.Status, r.Stdout)
			}
			for _, says := range c.says {
				if !strings.Contains(r.Stderr, says) {
					t.Errorf("%s is not in\n%s", says, r.Stderr)
				}
			}
			if strings.Contains(r.Stderr, "hidden") || strings.Contains(r.Stderr, "consuming") {
				t.Errorf("got\n%s", r.Stderr)
			}
		})
	}
}

func TestAnEndpointOfAzureResourceManagerIsAServerOverHTTPS(t *testing.T) {
	t.Parallel()
	const host = "management.usgovcloudapi.net"
	for endpoint, allowed := range map[string]bool{
		"https://" + host:                 true,
		"https://" + host + "/":           true,
		"https://" + host + ":8443":       true,
		"https://[::1]:8443":              true,
		host:                              false,
		"http://" + host:                  false,
		"https://":                        false,
		"https://:443":                    false,
		"https://" + host + ":65536":      false,
		"https://" + host + "/hidden":     false,
		"https://" + host + "?code=h":     false,
		"https://user:hidden@" + host:     false,
		" https://" + host:                false,
		"https://" + host + "/%zz/hidden": false,
	} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			r := feedscale{}.run(t, "consume", "--action", "containerapp", "--arm-endpoint", endpoint)
			if refused := strings.Contains(r.Stderr, "--arm-endpoint: "); refused == allowed || r.Status != 2 || strings.Contains(r.Stderr, "hidden") {
				t.Errorf("status %d: %s", r.Status, r.Stderr)
			}
		})
	}
}

func TestConsumeEndsAtATopicAndSaysHowASubscriptionIsWritten(t *testing.T) {
	t.Parallel()
	bus, settings := startQueue(t)
	testworld.Must(t, bus.CreateTopic(servicebusfake.TopicSpec{Name: "decisions"}))
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/decisions"
	const says = "consume one of its subscriptions: decisions/Subscriptions/SUBSCRIPTION"
	for _, args := range [][]string{{"consume"}, {"consume", "--sessions"}} {
		if r := (feedscale{settings: settings}).run(t, args...); r.Status != 1 || !strings.Contains(r.Stderr, "if it is a topic") || !strings.Contains(r.Stderr, says) {
			t.Errorf("%v: status %d: %s", args, r.Status, r.Stderr)
		}
	}
	settings["FEEDSCALE_EVENTS"] += "/subscriptions/nowhere"
	if r := (feedscale{settings: settings}).run(t, "consume"); r.Status != 1 || !strings.Contains(r.Stderr, `subscription "nowhere" of topic "decisions" does not exist`) {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

func TestConsumeEndsWhereTheQueueDoesNotExist(t *testing.T) {
	t.Parallel()
	_, settings := startQueue(t)
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/another"
	if r := (feedscale{settings: settings}).run(t, "consume"); r.Status != 1 || !strings.Contains(r.Stderr, `queue "another" does not exist`) {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}
