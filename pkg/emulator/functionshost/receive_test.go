package functionshost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// oneCallHost runs one invocation of a Service Bus trigger at once.
const oneCallHost = `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}},"extensions":{"serviceBus":{"maxConcurrentCalls":1}},
	"extensionBundle":{"id":"Microsoft.Azure.Functions.ExtensionBundle","version":"[4.*, 5.0.0)"}}`

// receiving is an app whose function takes from a queue, and the namespace.
func receiving(t *testing.T, function string, queue servicebusfake.QueueSpec, settings map[string]string) (app, *servicebusfake.Server) {
	t.Helper()
	queue.Name = "scale"
	namespace, err := servicebusfake.Start(servicebusfake.Options{Queues: []servicebusfake.QueueSpec{queue}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	all := map[string]string{"BUS": namespace.ConnectionString()}
	for name, value := range settings {
		all[name] = value
	}
	return app{host: oneCallHost, functions: map[string]string{function: queueFunction}, settings: all, options: functionshost.Options{Receive: true}}, namespace
}

func send(t *testing.T, namespace *servicebusfake.Server, bodies ...string) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	sender, err := client.NewSender("scale", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body), MessageID: &body}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMessageIsCompletedWhereTheFunctionSucceeds(t *testing.T) {
	t.Parallel()
	a, namespace := receiving(t, "take", servicebusfake.QueueSpec{}, nil)
	r := a.start(t)
	send(t, namespace, "hi")
	testworld.Eventually(t, "the end of the message", func() bool { return len(r.seen(t)) == 1 && len(namespace.Messages("scale")) == 0 })
	payload := r.lastSeen(t).payload(t)
	if body, id, count := string(payload.Data["msg"]), string(payload.Metadata["MessageId"]), string(payload.Metadata["DeliveryCount"]); body != `"\"hi\""` || id != `"\"hi\""` || count != `"1"` {
		t.Errorf("the handler got %s, id %s, delivery %s", body, id, count)
	}
}

func TestAMessageIsAbandonedWhereTheFunctionFails(t *testing.T) {
	t.Parallel()
	a, namespace := receiving(t, "take", servicebusfake.QueueSpec{MaxDeliveryCount: 3}, map[string]string{"ANSWER_STATUS": "500"})
	r := a.start(t)
	send(t, namespace, "hi")
	testworld.Eventually(t, "the dead letter", func() bool {
		all := namespace.Messages("scale")
		return len(all) == 1 && all[0].State == servicebusfake.DeadLettered
	})
	if seen := r.seen(t); len(seen) != 3 || !strings.Contains(seen[2].Body, `"DeliveryCount":"3"`) {
		t.Errorf("delivered %d times", len(seen))
	}
}

func TestALockIsRenewedWhileTheFunctionRunsAndOneMessageIsTakenAtATime(t *testing.T) {
	t.Parallel()
	const lock = 5 * time.Second // a busy machine renews one of a second too late
	a, namespace := receiving(t, "slow", servicebusfake.QueueSpec{LockDuration: lock}, nil)
	r := a.start(t)
	send(t, namespace, "first", "second")
	locked := func() (until []time.Time) {
		for _, m := range namespace.Messages("scale") {
			if m.State == servicebusfake.Locked {
				until = append(until, m.LockedUntil)
			}
		}
		return until
	}
	testworld.Eventually(t, "a lock", func() bool { return len(locked()) == 1 })
	first := locked()[0]
	testworld.Eventually(t, "a lock that lasts for two more", func() bool {
		until := locked()
		return len(until) == 1 && until[0].After(first.Add(2*lock))
	})
	if n := len(r.seen(t)); n != 1 {
		t.Errorf("%d messages were delivered, want 1", n)
	}
	release(t, r)
	testworld.Eventually(t, "the second message", func() bool { return len(r.seen(t)) == 2 })
	release(t, r)
	testworld.Eventually(t, "the end of both", func() bool { return len(namespace.Messages("scale")) == 0 })
}

func TestTheLockOfAHostThatIsGoneEndsAndAnotherHostGetsTheMessage(t *testing.T) {
	t.Parallel()
	a, namespace := receiving(t, "slow", servicebusfake.QueueSpec{LockDuration: 5 * time.Second}, nil)
	gone := a.start(t)
	send(t, namespace, "hi")
	testworld.Eventually(t, "the message", func() bool { return len(gone.seen(t)) == 1 })
	other := a.start(t)
	gone.Crash()
	if m := namespace.Messages("scale"); len(m) != 1 || m[0].State != servicebusfake.Locked {
		t.Errorf("behind the crash the queue has %+v", m)
	}
	testworld.Eventually(t, "the message at the other host", func() bool { return len(other.seen(t)) == 1 })
	release(t, other)
	testworld.Eventually(t, "its end", func() bool { return len(namespace.Messages("scale")) == 0 })
}

func TestAHostThatStopsTakesNothingMore(t *testing.T) {
	t.Parallel()
	a, namespace := receiving(t, "slow", servicebusfake.QueueSpec{}, nil)
	a.options.DrainTime = 2 * time.Second
	r := a.start(t)
	send(t, namespace, "first", "second")
	testworld.Eventually(t, "the first message", func() bool { return len(r.seen(t)) == 1 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.Stop()
	}()
	r.awaitLog(t, functionshost.Information, "shutting down")
	release(t, r)
	testworld.Eventually(t, "the end of the first", func() bool { return len(namespace.Messages("scale")) == 1 })
	<-stopped
	if n := len(r.seen(t)); n != 1 {
		t.Errorf("%d messages were delivered", n)
	}
}
