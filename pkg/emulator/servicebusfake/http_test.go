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
)

// overTLS starts a stand-in that the Go admin client, which knows TLS alone, can ask, and returns that client's options.
func overTLS(t *testing.T, o servicebusfake.Options) (*servicebusfake.Server, *admin.ClientOptions) {
	t.Helper()
	certificate, roots := certificate(t)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	return start(t, o), trusting(t, roots)
}

func trusting(t *testing.T, roots *x509.CertPool) *admin.ClientOptions {
	t.Helper()
	// A connection of its own for each request: one that is cut is then an error, and no reason to try again.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	return &admin.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: transport}, Retry: policy.RetryOptions{MaxRetries: -1},
	}}
}

func administer(t *testing.T, connection string, o *admin.ClientOptions) *admin.Client {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(connection, o)
	must(t, err)
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
		must(t, err)
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
	must(t, err)
	defer bus.Close(deadline(t))
	sender := newSender(t, bus, "orders")
	for range 6 {
		send(t, sender, text("a"))
	}
	later := time.Now().Add(time.Hour)
	send(t, sender, &azservicebus.Message{Body: []byte("later"), ScheduledEnqueueTime: &later})
	receiver := newReceiver(t, bus, "orders", nil)
	held := receive(t, receiver, 3)
	must(t, receiver.DeferMessage(deadline(t), held[0], nil))
	must(t, receiver.DeadLetterMessage(deadline(t), held[1], nil))

	client := administer(t, s.ConnectionString(), trusting(t, roots))
	got, err := client.GetQueueRuntimeProperties(deadline(t), "orders", nil)
	must(t, err)
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
			must(t, err)
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
		must(t, err)
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
				must(t, err)
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
		must(t, err)
		response, err := http.DefaultClient.Do(r)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
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
	must(t, err)
}

// TestTheJavaScriptAdminClientCannotTell runs the official client, which in version 7.9.5 asks with TLS alone. It needs Node.js and,
// the first time, a package registry.
func TestTheJavaScriptAdminClientCannotTell(t *testing.T) {
	t.Parallel()
	folder, err := npm.InstallFolder(t.Context(), "servicebus-js", filepath.Join("testdata", "js"))
	must(t, err)
	certificate, _ := certificate(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	must(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	s := start(t, servicebusfake.Options{
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}, Queues: []servicebusfake.QueueSpec{{Name: "orders", DefaultTTL: 14 * 24 * time.Hour}},
	})
	client := exec.CommandContext(deadline(t), "node", "admin.mjs", s.ConnectionString())
	client.Dir = folder
	client.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+trusted)
	if output, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
