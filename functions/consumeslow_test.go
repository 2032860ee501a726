package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

// grouped is the decision of a group.
func grouped(replicas int, target map[string]string) events.Data {
	return events.Data{
		Group: "shop-workers", Sequence: 42, DesiredReplicas: replicas, Active: true, Direction: "out", Status: "lagging", Target: target,
		Members: []events.Member{{Processor: "orders", DesiredReplicas: new(replicas), Status: "lagging"}},
	}
}

func TestAGroupsEventIsActedUponByEveryAction(t *testing.T) {
	t.Parallel()
	posted := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { posted <- r.Header.Get("webhook-id") }))
	t.Cleanup(receiver.Close)
	scaled, patched := make(chan int, 10), make(chan string, 10)
	kubeconfig := startCluster(t, scaled, "")
	endpoint, azure := startAzure(t, patched)
	for _, c := range []struct {
		action   string
		args     []string
		settings map[string]string
		target   map[string]string
		done     func() string // what the action did
		want     string
	}{
		{"webhook", []string{"--url", receiver.URL}, nil, nil, func() string { return testworld.Came(t, "the post", posted) }, "shop-workers-000000000042"},
		{"kubernetes", []string{"--kubeconfig", kubeconfig, "--context", "shop"}, nil, map[string]string{"deployment": "orders"}, func() string { return fmt.Sprint(testworld.Came(t, "the count", scaled)) }, "5"},
		{"containerapp", []string{"--arm-endpoint", endpoint}, azure,
			map[string]string{"subscriptionId": "00000000-0000-0000-0000-00000000000a", "resourceGroup": "shop", "containerApp": "orders"},
			func() string { return testworld.Came(t, "the patch", patched) }, `{"properties":{"template":{"revisionSuffix":null,"scale":{"minReplicas":5,"maxReplicas":5}}}}`},
		{"stdout", nil, nil, nil, nil, ""},
	} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			bus := startQueue(t, false)
			body := published(t, bus, grouped(5, c.target))
			consumption := consuming(t, bus, c.settings, append([]string{"--action", c.action}, c.args...)...)
			settled(t, bus)
			consumption.stop()
			if c.done == nil {
				c.done, c.want = consumption.stdout.String, string(body)+"\n"
			}
			if got := c.done(); got != c.want {
				t.Errorf("it did %s, want %s", got, c.want)
			}
			if log := consumption.stderr.String(); !strings.Contains(log, `"msg":"acted","group":"shop-workers","sequence":42,"desiredReplicas":5`) {
				t.Errorf("log %s", log)
			}
		})
	}
}

// hanging is a webhook that does not answer until it is opened. It also reports requests that the
// caller gave up.
type hanging struct {
	*httptest.Server
	posted, gaveUp chan string // ids
	open           chan struct{}
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{posted: make(chan string, 10), gaveUp: make(chan string, 10), open: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		// a server notices that the caller left only after it has read the body
		_, _ = io.Copy(io.Discard, r.Body)
		h.posted <- id
		select {
		case <-h.open:
		case <-r.Context().Done():
			h.gaveUp <- id
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// onEachQueue runs a test with a queue without sessions and one with sessions. Their locks last 5 s: a busy
// machine renews a lock of a second too late.
func onEachQueue(t *testing.T, test func(t *testing.T, bus *servicebusfake.Server, sessions string)) {
	for rule, sessions := range map[string]bool{"a plain queue": false, "a queue with sessions": true} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			bus := testworld.StartNamespace(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue, RequiresSession: sessions, LockDuration: 5 * time.Second, MaxDeliveryCount: 2}}})
			test(t, bus, fmt.Sprintf("--sessions=%v", sessions))
		})
	}
}

// isRenewal reports whether a request renews the lock of a message or a session.
func isRenewal(r *servicebusfake.Request) bool {
	return r.Op == servicebusfake.OpManage && strings.HasPrefix(r.Operation, "com.microsoft:renew-")
}

func TestAnActionThatOutlastsTheLockIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, bus *servicebusfake.Server, sessions string) {
		renewed := make(chan struct{}, 100)
		bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
			if isRenewal(r) {
				renewed <- struct{}{}
			}
			return nil
		})
		receiver := newHanging(t)
		decided(t, bus, 5, nil)
		c := consuming(t, bus, nil, "--action", "webhook", "--url", receiver.URL, sessions)
		testworld.Came(t, "the event", receiver.posted)
		for range 4 { // for two locks at least
			testworld.Came(t, "a renewal", renewed)
		}
		close(receiver.open)
		settled(t, bus)
		c.stop()
		if len(receiver.posted) != 0 || len(bus.Messages(testworld.Queue+"/$DeadLetterQueue")) != 0 {
			t.Errorf("posted %d times more, dead letters %+v", len(receiver.posted), bus.Messages(testworld.Queue+"/$DeadLetterQueue"))
		}
	})
}

func TestALostLockGivesUpTheActionAndTheEventComesAgain(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, bus *servicebusfake.Server, sessions string) {
		lost := make(chan struct{})
		bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
			select {
			case <-lost:
				return nil
			default:
			}
			if !isRenewal(r) {
				return nil
			}
			return &servicebusfake.Answer{Condition: "com.microsoft:message-lock-lost", Status: 410, Keep: true}
		})
		receiver := newHanging(t)
		decided(t, bus, 5, nil)
		c := consuming(t, bus, nil, "--action", "webhook", "--url", receiver.URL, sessions)
		first, gone := testworld.Came(t, "the event", receiver.posted), testworld.Came(t, "its end", receiver.gaveUp)
		close(lost)
		close(receiver.open)
		if again := testworld.Came(t, "the event again", receiver.posted); again != first || gone != first {
			t.Errorf("posted %s, given up %s, posted again %s", first, gone, again)
		}
		settled(t, bus)
		c.stop()
		if log := c.stderr.String(); !strings.Contains(log, "before its lock was lost: it comes again") {
			t.Errorf("log %s", log)
		}
	})
}

func TestASignalLetsAnActionEnd(t *testing.T) {
	t.Parallel()
	onEachQueue(t, func(t *testing.T, bus *servicebusfake.Server, sessions string) {
		receiver := newHanging(t)
		decided(t, bus, 5, nil)
		c := consuming(t, bus, nil, "--action", "webhook", "--url", receiver.URL, sessions)
		testworld.Came(t, "the event", receiver.posted)
		testworld.Must(t, c.command.Process.Signal(syscall.SIGTERM))
		renewed := make(chan struct{}, 100) // the consumer runs on, and keeps its event
		bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
			if isRenewal(r) {
				renewed <- struct{}{}
			}
			return nil
		})
		testworld.Came(t, "a renewal", renewed)
		close(receiver.open)
		if err := c.command.Wait(); err != nil {
			t.Errorf("it ended with %v: %s", err, &c.stderr)
		}
		if left := bus.Messages(testworld.Queue); len(left) != 0 || len(receiver.gaveUp) != 0 || len(receiver.posted) != 0 {
			t.Errorf("left are %+v, %d given up, posted %d times more", left, len(receiver.gaveUp), len(receiver.posted))
		}
		if log := c.stderr.String(); !strings.Contains(log, `"msg":"acted"`) || !strings.Contains(log, `"msg":"consuming ends","cause":"terminated`) {
			t.Errorf("log %s", log)
		}
	})
}

// TestATargetOfAnHPAIsLeftAloneUntilTheNextEvent: its events are neither dead-lettered nor tried
// again.
func TestATargetOfAnHPAIsLeftAloneUntilTheNextEvent(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	scaled := make(chan int, 10)
	kubeconfig := startCluster(t, scaled, `{"metadata":{"name":"orders-cpu","namespace":"shop"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"orders"}}}`)
	c := consuming(t, bus, nil, "--action", "kubernetes", "--kubeconfig", kubeconfig, "--context", "shop")
	data := events.Data{Processor: "orders", DesiredReplicas: 5, Direction: "out", Status: "lagging", Target: map[string]string{"deployment": "orders"}}
	for range 3 {
		data.Sequence++
		published(t, bus, data)
		settled(t, bus)
	}
	c.stop()
	if dead := bus.Messages(testworld.Queue + "/$DeadLetterQueue"); len(dead) != 0 || len(scaled) != 0 {
		t.Errorf("dead letters %+v, scaled %d times", dead, len(scaled))
	}
	if log := c.stderr.String(); strings.Count(log, `"level":"WARN"`) != 1 || !strings.Contains(log, "kubectl delete hpa orders-cpu -n shop") {
		t.Errorf("log %s", log)
	}
}

func TestARefusalThatIsMendedCostsNoEvent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			bus := startQueue(t, false)
			var posts atomic.Int64
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if posts.Add(1) == 1 {
					w.WriteHeader(status)
				}
			}))
			t.Cleanup(receiver.Close)
			decided(t, bus, 5, nil)
			c := consuming(t, bus, nil, "--action", "webhook", "--url", receiver.URL)
			settled(t, bus)
			c.stop()
			if dead := bus.Messages(testworld.Queue + "/$DeadLetterQueue"); len(dead) != 0 || posts.Load() != 2 {
				t.Errorf("dead letters %+v, posted %d times", dead, posts.Load())
			}
			if log := c.stderr.String(); !strings.Contains(log, "correct its URL or the secret") {
				t.Errorf("log %s", log)
			}
		})
	}
}
