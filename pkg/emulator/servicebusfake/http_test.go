package servicebusfake_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// overTLS starts a stand-in that the Go admin client, which knows TLS alone, can ask, and returns
// that client's options.
func overTLS(t *testing.T, o servicebusfake.Options) (*servicebusfake.Server, *admin.ClientOptions) {
	t.Helper()
	certificate, roots := certificate(t)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	return start(t, o), trusting(t, roots)
}

func trusting(t *testing.T, roots *x509.CertPool) *admin.ClientOptions {
	t.Helper()
	// A connection of its own for each request: one that is cut is then an error, and no reason to
	// try again.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &admin.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1},
	}}
}

func administer(t *testing.T, connection string, o *admin.ClientOptions) *admin.Client {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(connection, o)
	testworld.Must(t, err)
	return client
}

func TestTheAdminClientReadsQueues(t *testing.T) {
	t.Parallel()
	s, o := overTLS(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{
		{Name: "orders"},
		{Name: "Shop/Payments", LockDuration: 90 * time.Second, MaxDeliveryCount: 3, RequiresSession: true, DuplicateDetectionWindow: time.Hour, DefaultTTL: 14*24*time.Hour + 30*time.Minute, DeadLetterOnExpiry: true},
	}})
	client := administer(t, s.ConnectionString(), o)
	for _, c := range []struct{ queue, want string }{
		{"orders", "PT1M P10675199DT2H48M5.4775807S 10 false false false PT10M Active"},
		{"ORDERS", "PT1M P10675199DT2H48M5.4775807S 10 false false false PT10M Active"},
		{"shop/payments", "PT1M30S P14DT30M 3 true true true PT1H Active"},
	} {
		q, err := client.GetQueue(deadline(t), c.queue, nil)
		testworld.Must(t, err)
		got := fmt.Sprint(*q.LockDuration, " ", *q.DefaultMessageTimeToLive, " ", *q.MaxDeliveryCount, " ", *q.RequiresSession, " ", *q.RequiresDuplicateDetection, " ",
			*q.DeadLetteringOnMessageExpiration, " ", *q.DuplicateDetectionHistoryTimeWindow, " ", *q.Status)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.queue, got, c.want)
		}
	}
	if q, err := client.GetQueue(deadline(t), "absent", nil); q != nil || err != nil {
		t.Errorf("a queue that is not there: %v, %v", q, err)
	}
}

func TestTheAdminClientCountsMessagesByState(t *testing.T) {
	t.Parallel()
	certificate, roots := certificate(t)
	o := orders(servicebusfake.QueueSpec{})
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s := start(t, o)
	bus, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), &azservicebus.ClientOptions{TLSConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}})
	testworld.Must(t, err)
	defer bus.Close(deadline(t))
	sender := newSender(t, bus, "orders")
	for range 6 {
		send(t, sender, text("a"))
	}
	later := time.Now().Add(time.Hour)
	send(t, sender, &azservicebus.Message{Body: []byte("later"), ScheduledEnqueueTime: &later})
	receiver := newReceiver(t, bus, "orders", nil)
	held := receive(t, receiver, 3)
	testworld.Must(t, receiver.DeferMessage(deadline(t), held[0], nil))
	testworld.Must(t, receiver.DeadLetterMessage(deadline(t), held[1], nil))

	client := administer(t, s.ConnectionString(), trusting(t, roots))
	got, err := client.GetQueueRuntimeProperties(deadline(t), "orders", nil)
	testworld.Must(t, err)
	// Active: three that wait, one deferred and one locked.
	if got.ActiveMessageCount != 5 || got.DeadLetterMessageCount != 1 || got.ScheduledMessageCount != 1 || got.TotalMessageCount != 7 || got.SizeInBytes == 0 || got.CreatedAt.IsZero() {
		t.Errorf("got %+v", got.QueueRuntimeProperties)
	}
}

func TestTheAdminClientListsQueuesByPages(t *testing.T) {
	t.Parallel()
	var queues []servicebusfake.QueueSpec
	for i := range 7 {
		queues = append(queues, servicebusfake.QueueSpec{Name: fmt.Sprintf("q%d", i)})
	}
	s, o := overTLS(t, servicebusfake.Options{Queues: queues})
	for _, size := range []int32{0, 3, 7, 50} {
		var got []string
		pager := administer(t, s.ConnectionString(), o).NewListQueuesRuntimePropertiesPager(&admin.ListQueuesRuntimePropertiesOptions{MaxPageSize: size})
		for pager.More() {
			page, err := pager.NextPage(deadline(t))
			testworld.Must(t, err)
			for _, q := range page.QueueRuntimeProperties {
				got = append(got, q.QueueName)
			}
		}
		if strings.Join(got, " ") != "q0 q1 q2 q3 q4 q5 q6" {
			t.Errorf("pages of %d: %v", size, got)
		}
	}
}

func TestTheManagementAPIChecksWhoAsks(t *testing.T) {
	t.Parallel()
	o := orders(servicebusfake.QueueSpec{})
	o.Token = func(jwt string) error {
		if jwt != "good" {
			return errors.New("not the good one")
		}
		return nil
	}
	s, options := overTLS(t, o)
	byIdentity := func(jwt string) *admin.Client {
		client, err := admin.NewClient(s.Addr().String(), token(jwt), options)
		testworld.Must(t, err)
		return client
	}
	for name, c := range map[string]struct {
		client *admin.Client
		want   int // status; 0 = success
	}{
		"the key as given":    {administer(t, s.ConnectionString(), options), 0},
		"another key":         {administer(t, strings.Replace(s.ConnectionString(), servicebusfake.DefaultKey, "d3Jvbmc=", 1), options), http.StatusUnauthorized},
		"a good bearer token": {byIdentity("good"), 0},
		"a bad bearer token":  {byIdentity("bad"), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.client.GetQueueRuntimeProperties(deadline(t), "orders", nil)
			var refused *azcore.ResponseError
			switch {
			case c.want == 0:
				testworld.Must(t, err)
			case !errors.As(err, &refused) || refused.StatusCode != c.want || !strings.Contains(err.Error(), "claim is empty or token is invalid"):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheManagementAPIAnswersInPlainOnThePortOfAMQP(t *testing.T) {
	t.Parallel()
	s := start(t, orders(servicebusfake.QueueSpec{}))
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{http.MethodGet, "/orders", http.StatusUnauthorized, "MissingToken"},
		{http.MethodPut, "/orders", http.StatusUnauthorized, "MissingToken"},
	} {
		r, err := http.NewRequestWithContext(deadline(t), c.method, "http://"+s.Addr().String()+c.path, nil)
		testworld.Must(t, err)
		response, err := http.DefaultClient.Do(r)
		testworld.Must(t, err)
		body, err := io.ReadAll(response.Body)
		testworld.Must(t, err)
		testworld.Must(t, response.Body.Close())
		if response.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, response.StatusCode, body)
		}
	}
}

func TestControlScriptsTheManagementAPI(t *testing.T) {
	t.Parallel()
	s, o := overTLS(t, orders(servicebusfake.QueueSpec{}))
	s.Control(on(servicebusfake.OpHTTP, servicebusfake.Answer{Condition: "unauthorized", Status: http.StatusUnauthorized, Description: "Manage,EntityRead claims required for this operation."}))
	client := administer(t, s.ConnectionString(), o)
	if _, err := client.GetQueue(deadline(t), "orders", nil); err == nil || !strings.Contains(err.Error(), "EntityRead") {
		t.Errorf("got %v", err)
	}
	s.Control(on(servicebusfake.OpHTTP, servicebusfake.Answer{Drop: true}))
	if _, err := client.GetQueue(deadline(t), "orders", nil); err == nil {
		t.Error("no error where the connection was cut")
	}
	_, err := client.GetQueue(deadline(t), "orders", nil)
	testworld.Must(t, err)
}

func TestTheAdminClientReadsTopicsAndTheirSubscriptions(t *testing.T) {
	t.Parallel()
	correlation := servicebusfake.CorrelationFilter{Properties: map[string]any{"processor": "orders"}}
	s, o := overTLS(t, servicebusfake.Options{
		Queues: []servicebusfake.QueueSpec{{Name: "orders"}},
		Topics: []servicebusfake.TopicSpec{
			{Name: "alone"},
			{Name: "shop/Decisions", DuplicateDetectionWindow: 20 * time.Minute, DefaultTTL: 24 * time.Hour, MaxMessageSize: 1 << 20, Subscriptions: []servicebusfake.SubscriptionSpec{
				{Name: "kubernetes"},
				{Name: "Audit", LockDuration: 90 * time.Second, MaxDeliveryCount: 3, RequiresSession: true, DefaultTTL: time.Hour, DeadLetterOnExpiry: true,
					Rules: []servicebusfake.Rule{{Name: "orders", Filter: correlation}, {Name: "none", Filter: servicebusfake.FalseFilter{}}}},
			}},
		},
	})
	client := administer(t, s.ConnectionString(), o)
	for _, c := range []struct{ topic, want string }{
		{"alone", "P10675199DT2H48M5.4775807S false PT10M 256 Active: 0 subscriptions, filters 0 0"},
		// the true filter is one of SQL
		{"SHOP/decisions", "P1D true PT20M 1024 Active: 2 subscriptions, filters 2 1"},
	} {
		topic, err := client.GetTopic(deadline(t), c.topic, nil)
		testworld.Must(t, err)
		counts, err := client.GetTopicRuntimeProperties(deadline(t), c.topic, nil)
		testworld.Must(t, err)
		got := fmt.Sprintf("%s %v %s %d %s: %d subscriptions, filters %d %d", *topic.DefaultMessageTimeToLive, *topic.RequiresDuplicateDetection, *topic.DuplicateDetectionHistoryTimeWindow,
			*topic.MaxMessageSizeInKilobytes, *topic.Status, counts.SubscriptionCount, counts.SQLFilterCount, counts.CorrelationFilterCount)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.topic, got, c.want)
		}
	}
	for _, c := range []struct{ subscription, want string }{
		// its own: that the topic's is the most does not show
		{"kubernetes", "PT1M P10675199DT2H48M5.4775807S 10 false false Active"},
		{"AUDIT", "PT1M30S PT1H 3 true true Active"},
	} {
		q, err := client.GetSubscription(deadline(t), "shop/decisions", c.subscription, nil)
		testworld.Must(t, err)
		got := fmt.Sprint(*q.LockDuration, " ", *q.DefaultMessageTimeToLive, " ", *q.MaxDeliveryCount, " ", *q.RequiresSession, " ", *q.DeadLetteringOnMessageExpiration, " ", *q.Status)
		if got != c.want || !strings.EqualFold(q.SubscriptionName, c.subscription) {
			t.Errorf("%s: got %s, want %s", c.subscription, got, c.want)
		}
	}
	for _, c := range []struct{ rule, topic, subscription string }{
		{"no such topic", "absent", ""},
		{"no such subscription", "alone", "kubernetes"},
		{"neither", "absent", "kubernetes"},
		{"a queue has no subscriptions", "orders", "kubernetes"},
	} {
		var found bool
		var err error
		if c.subscription == "" {
			var topic *admin.GetTopicResponse
			topic, err = client.GetTopic(deadline(t), c.topic, nil)
			found = topic != nil
		} else {
			var subscription *admin.GetSubscriptionResponse
			subscription, err = client.GetSubscription(deadline(t), c.topic, c.subscription, nil)
			found = subscription != nil
		}
		if found || err != nil {
			t.Errorf("%s: found %v, %v", c.rule, found, err)
		}
	}
	// It stands there, and is none.
	if _, err := client.GetTopicRuntimeProperties(deadline(t), "orders", nil); err == nil || !strings.Contains(err.Error(), "invalid topic runtime properties") {
		t.Errorf("a queue as a topic: %v", err)
	}
}

func TestTheAdminClientCountsWhatWaitsInATopicAndItsSubscriptions(t *testing.T) {
	t.Parallel()
	certificate, roots := certificate(t)
	o := events(servicebusfake.TopicSpec{}, servicebusfake.SubscriptionSpec{Name: "a"}, servicebusfake.SubscriptionSpec{Name: "b"})
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s := start(t, o)
	bus, err := azservicebus.NewClientFromConnectionString(s.ConnectionString(), &azservicebus.ClientOptions{TLSConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}})
	testworld.Must(t, err)
	defer bus.Close(deadline(t))
	sender := newSender(t, bus, "events")
	for range 4 {
		send(t, sender, text("event"))
	}
	later := time.Now().Add(time.Hour)
	send(t, sender, &azservicebus.Message{Body: []byte("later"), ScheduledEnqueueTime: &later})
	receiver := newSubscriber(t, bus, "a", nil)
	held := receive(t, receiver, 2)
	testworld.Must(t, receiver.CompleteMessage(deadline(t), held[0], nil))
	testworld.Must(t, receiver.DeadLetterMessage(deadline(t), held[1], nil))

	client := administer(t, s.ConnectionString(), trusting(t, roots))
	topic, err := client.GetTopicRuntimeProperties(deadline(t), "events", nil)
	testworld.Must(t, err)
	if topic.ScheduledMessageCount != 1 || topic.SubscriptionCount != 2 || topic.SizeInBytes == 0 || topic.CreatedAt.IsZero() {
		t.Errorf("the topic: %+v", topic.TopicRuntimeProperties)
	}
	for _, c := range []struct {
		subscription        string
		active, dead, total int
	}{{"a", 2, 1, 3}, {"b", 4, 0, 4}} {
		got, err := client.GetSubscriptionRuntimeProperties(deadline(t), "events", c.subscription, nil)
		testworld.Must(t, err)
		if int(got.ActiveMessageCount) != c.active || int(got.DeadLetterMessageCount) != c.dead || int(got.TotalMessageCount) != c.total {
			t.Errorf("%s: %+v", c.subscription, got.SubscriptionRuntimeProperties)
		}
	}
}

func TestTheAdminClientListsTopicsAndSubscriptionsByPages(t *testing.T) {
	t.Parallel()
	var topics []servicebusfake.TopicSpec
	var subscriptions []servicebusfake.SubscriptionSpec
	for i := range 5 {
		subscriptions = append(subscriptions, servicebusfake.SubscriptionSpec{Name: fmt.Sprintf("s%d", i)})
		topics = append(topics, servicebusfake.TopicSpec{Name: fmt.Sprintf("t%d", i), Subscriptions: subscriptions})
	}
	s, o := overTLS(t, servicebusfake.Options{Topics: topics, Queues: []servicebusfake.QueueSpec{{Name: "orders"}}})
	client := administer(t, s.ConnectionString(), o)
	for _, size := range []int32{0, 2, 5, 50} {
		var got []string
		for pager := client.NewListTopicsRuntimePropertiesPager(&admin.ListTopicsRuntimePropertiesOptions{MaxPageSize: size}); pager.More(); {
			page, err := pager.NextPage(deadline(t))
			testworld.Must(t, err)
			for _, topic := range page.TopicRuntimeProperties {
				got = append(got, fmt.Sprint(topic.TopicName, ":", topic.SubscriptionCount))
			}
		}
		for pager := client.NewListSubscriptionsPager("t3", &admin.ListSubscriptionsOptions{MaxPageSize: size}); pager.More(); {
			page, err := pager.NextPage(deadline(t))
			testworld.Must(t, err)
			for _, subscription := range page.Subscriptions {
				got = append(got, subscription.TopicName+"/"+subscription.SubscriptionName)
			}
		}
		if strings.Join(got, " ") != "t0:1 t1:2 t2:3 t3:4 t4:5 t3/s0 t3/s1 t3/s2 t3/s3" {
			t.Errorf("pages of %d: %v", size, got)
		}
	}
	if _, err := client.NewListSubscriptionsPager("absent", nil).NextPage(deadline(t)); err == nil || !strings.Contains(err.Error(), "was not found") {
		t.Errorf("subscriptions of a topic that is not there: %v", err)
	}
}

// TestTheJavaScriptAdminClientCannotTell runs the official client, which in version 7.9.5 asks with
// TLS alone. It needs Node.js and, the first time, a package registry.
func TestTheJavaScriptAdminClientCannotTell(t *testing.T) {
	t.Parallel()
	folder, err := npm.InstallFolder(t.Context(), "servicebus-js", filepath.Join("testdata", "js"))
	testworld.Must(t, err)
	certificate, _ := certificate(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	testworld.Must(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	s := start(t, servicebusfake.Options{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, Queues: []servicebusfake.QueueSpec{{Name: "orders", DefaultTTL: 14 * 24 * time.Hour}},
		Topics: []servicebusfake.TopicSpec{{Name: "decisions", Subscriptions: []servicebusfake.SubscriptionSpec{{Name: "audit"}, {Name: "kubernetes", RequiresSession: true}}}},
	})
	client := exec.CommandContext(deadline(t), "node", "admin.mjs", s.ConnectionString())
	client.Dir = folder
	client.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+trusted)
	if output, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
