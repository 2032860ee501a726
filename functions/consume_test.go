package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// startQueue starts a namespace with a single queue.
func startQueue(t *testing.T, sessions bool) *servicebusfake.Server {
	t.Helper()
	return testworld.StartNamespace(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue, RequiresSession: sessions, MaxDeliveryCount: 3}}})
}

// decided publishes an event of the processor orders.
func decided(t *testing.T, bus *servicebusfake.Server, replicas int, target map[string]string) []byte {
	t.Helper()
	return published(t, bus, events.Data{Processor: "orders", Sequence: 42, DesiredReplicas: replicas, Active: true, Direction: "out", Status: "lagging", Target: target})
}

// published publishes an event.
func published(t *testing.T, bus *servicebusfake.Server, data events.Data) []byte {
	t.Helper()
	body, err := events.ScaleEvent{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Data: data}.Encode()
	testworld.Must(t, err)
	p, err := servicebus.NewPublisher(bus.ConnectionString(), testworld.Queue, servicebus.PublisherOptions{})
	testworld.Must(t, err)
	testworld.Must(t, p.Publish(t.Context(), body))
	testworld.Must(t, p.Close(t.Context()))
	return body
}

// output is what a running command has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// consumption is a running `feedscale consume`.
type consumption struct {
	t              *testing.T
	command        *exec.Cmd
	stdout, stderr output
}

func consuming(t *testing.T, bus *servicebusfake.Server, settings map[string]string, args ...string) *consumption {
	t.Helper()
	c := &consumption{t: t, command: prepare(t, t.TempDir(), settings, append([]string{"consume"}, args...)...)}
	c.command.Env = append(c.command.Env, "SERVICEBUS="+bus.ConnectionString(), "FEEDSCALE_EVENTS=servicebus:SERVICEBUS/"+testworld.Queue)
	c.command.Stdout, c.command.Stderr = &c.stdout, &c.stderr
	testworld.Must(t, c.command.Start())
	t.Cleanup(func() {
		_ = c.command.Process.Kill() // if it was not stopped
		_ = c.command.Wait()
	})
	return c
}

// stop stops it as a platform does, and checks the clean exit and that the log is only JSON.
func (c *consumption) stop() {
	c.t.Helper()
	testworld.Must(c.t, c.command.Process.Signal(syscall.SIGTERM))
	if err := c.command.Wait(); err != nil {
		c.t.Errorf("stopped with %v: %s", err, &c.stderr)
	}
	var last string
	for line := range strings.Lines(c.stderr.String()) {
		if last = line; !json.Valid([]byte(line)) {
			c.t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	if !strings.Contains(last, `"level":"INFO","msg":"consuming ends","cause":"terminated`) {
		c.t.Errorf("the last line does not name the signal: %s", last)
	}
}

// settled waits until the queue is empty.
func settled(t *testing.T, bus *servicebusfake.Server) {
	t.Helper()
	testworld.Eventually(t, "the event settled", func() bool {
		return !slices.ContainsFunc(bus.Messages(testworld.Queue), func(m servicebusfake.Message) bool { return m.State != servicebusfake.DeadLettered })
	})
}

func TestConsumePrintsEachEventAsItWasPublished(t *testing.T) {
	t.Parallel()
	for rule, sessions := range map[string]bool{"a plain queue": false, "a queue with sessions": true} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			bus := startQueue(t, sessions)
			want := decided(t, bus, 5, map[string]string{"a": "<&>"})
			c := consuming(t, bus, nil, fmt.Sprintf("--sessions=%v", sessions))
			settled(t, bus)
			c.stop()
			if got := c.stdout.String(); got != string(want)+"\n" {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestConsumePostsToAWebhookThatFailsTwice(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	var mu sync.Mutex
	var bodies, signatures []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		bodies, signatures = append(bodies, string(body)), append(signatures, r.Header.Get("webhook-signature"))
		if len(bodies) < 3 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(receiver.Close)
	want := decided(t, bus, 5, nil)
	c := consuming(t, bus, map[string]string{"FEEDSCALE_WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "--action", "webhook", "--url", receiver.URL+"/scale?code=hidden")
	settled(t, bus)
	c.stop()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(bodies, []string{string(want), string(want), string(want)}) {
		t.Errorf("got %q, want %s three times", bodies, want)
	}
	for _, signature := range signatures {
		if !strings.HasPrefix(signature, "v1,") {
			t.Errorf("the signature is %q", signature)
		}
	}
	if log := c.stderr.String(); !strings.Contains(log, `"msg":"acted"`) || !strings.Contains(log, receiver.URL) || strings.Contains(log, "hidden") || strings.Contains(log, "MfKQ") {
		t.Errorf("log %s", log)
	}
}

// TestAnEventIsActedUponAgainWhereItsConsumerIsKilled: an event is not lost if its consumer ends
// during the action.
func TestAnEventIsActedUponAgainWhereItsConsumerIsKilled(t *testing.T) {
	t.Parallel()
	for rule, sessions := range map[string]bool{"a plain queue": false, "a queue with sessions": true} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			bus := testworld.StartNamespace(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue, RequiresSession: sessions, LockDuration: time.Second}}})
			posted, hang := make(chan string, 10), make(chan struct{})
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				posted <- r.Header.Get("webhook-id")
				<-hang
			}))
			t.Cleanup(receiver.Close)
			decided(t, bus, 5, nil)
			args := []string{"--action", "webhook", "--url", receiver.URL, fmt.Sprintf("--sessions=%v", sessions)}
			killed := consuming(t, bus, nil, args...)
			<-posted
			testworld.Must(t, killed.command.Process.Kill())
			close(hang)
			next := consuming(t, bus, nil, args...)
			settled(t, bus)
			next.stop()
			if again := <-posted; again != "orders-000000000042" {
				t.Errorf("posted again: %s", again)
			}
		})
	}
}

// startCluster starts an API server with the Deployment orders in the namespace shop, and returns a
// kubeconfig for it. It calls scaled with each new count. hpas are further objects: the items of a
// list, in JSON.
func startCluster(t *testing.T, scaled chan<- int, hpas string) (kubeconfig string) {
	t.Helper()
	scale := func(replicas int) string {
		return fmt.Sprintf(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"orders","namespace":"shop","resourceVersion":"7"},"spec":{"replicas":%d},"status":{"replicas":1}}`, replicas)
	}
	answers := map[string]string{
		"GET /api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"GET /apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
		"GET /apis/apps/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[` +
			`{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]},` +
			`{"name":"deployments/scale","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","update"]}]}`,
		"GET /apis/apps/v1/namespaces/shop/deployments/orders/scale":        scale(1),
		"GET /apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers": `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{},"items":[` + hpas + `]}`,
	}
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer of-the-kubeconfig" {
			t.Errorf("%s %s: Authorization is %q", r.Method, r.URL, got)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPut && r.URL.Path == "/apis/apps/v1/namespaces/shop/deployments/orders/scale" {
			var change struct{ Spec struct{ Replicas int } }
			if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
				t.Error(err)
			}
			scaled <- change.Spec.Replicas
			fmt.Fprint(w, scale(change.Spec.Replicas))
			return
		}
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if strings.HasPrefix(r.URL.Path, "/apis/keda.sh/") { // KEDA is not installed
			http.NotFound(w, r)
			return
		}
		if !ok { // as an API that is registered and down answers
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(cluster.Close)
	return kubeconfigOf(t, cluster)
}

// kubeconfigOf writes a kubeconfig whose context shop names a cluster and its namespace shop.
func kubeconfigOf(t *testing.T, cluster *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	testworld.Must(t, os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: other,
		clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: u, user: {token: of-the-kubeconfig}}],
		contexts: [{name: other, context: {}}, {name: shop, context: {cluster: c, user: u, namespace: shop}}]}`, cluster.URL, testworld.CertificateOf(t, cluster)), 0o600))
	return file
}

func TestConsumeScalesADeployment(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	scaled := make(chan int, 10)
	kubeconfig := startCluster(t, scaled, "")
	decided(t, bus, 5, map[string]string{"deployment": "orders"})
	c := consuming(t, bus, nil, "--action", "kubernetes", "--kubeconfig", kubeconfig, "--context", "shop")
	settled(t, bus)
	c.stop()
	if got := <-scaled; got != 5 || len(scaled) != 0 {
		t.Errorf("scaled to %d, and %d times more", got, len(scaled))
	}
	if log := c.stderr.String(); !strings.Contains(log, `"target":"Deployment shop/orders"`) {
		t.Errorf("log %s", log)
	}
}

// TestARefusedTokenIsAWarningOfConsumeAlone: client-go also logs an error for each request, which
// must not be repeated.
func TestARefusedTokenIsAWarningOfConsumeAlone(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`)
	}))
	t.Cleanup(cluster.Close)
	decided(t, bus, 5, map[string]string{"deployment": "orders"})
	c := consuming(t, bus, map[string]string{"FEEDSCALE_LOG_LEVEL": "debug"}, "--action", "kubernetes", "--kubeconfig", kubeconfigOf(t, cluster), "--context", "shop")
	testworld.Eventually(t, "the warning", func() bool { return strings.Contains(c.stderr.String(), "the cluster does not accept the credentials") })
	c.stop()
	log := c.stderr.String()
	if strings.Contains(log, `"level":"ERROR"`) || strings.Count(log, `"level":"WARN"`) != 1 {
		t.Errorf("the log has more than one warning: %s", log)
	}
}

func TestAnEventThatNamesNothingToScaleIsDeadLetteredWithTheLabelThatIsMissing(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	kubeconfig := startCluster(t, nil, "")
	decided(t, bus, 5, map[string]string{"containerApp": "orders"})
	c := consuming(t, bus, nil, "--action", "kubernetes", "--kubeconfig", kubeconfig, "--context", "shop")
	settled(t, bus)
	c.stop()
	dead := bus.Messages(testworld.Queue + "/$DeadLetterQueue")
	if len(dead) != 1 || !strings.Contains(fmt.Sprint(dead[0].Properties), "target label apiVersion is missing; allowed are deployment") {
		t.Errorf("dead-lettered are %+v", dead)
	}
}

// startAzure starts an endpoint of managed identities and Azure Resource Manager with the app
// orders. It returns the settings to reach them.
func startAzure(t *testing.T, patched chan<- string) (endpoint string, settings map[string]string) {
	t.Helper()
	const app = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.App/containerApps/orders"
	manager := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer of-the-identity" {
			t.Errorf("%s %s: Authorization is %q", r.Method, r.URL, got)
		}
		if got := r.URL.Query().Get("api-version"); got != "2025-01-01" {
			t.Errorf("%s %s: api-version is %q", r.Method, r.URL, got)
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "GET " + app:
			fmt.Fprint(w, `{"properties":{"provisioningState":"Succeeded","configuration":{"activeRevisionsMode":"Single"},"template":{"scale":{"minReplicas":1,"maxReplicas":10}}}}`)
		case "PATCH " + app:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			patched <- string(body)
			w.Header().Set("Azure-AsyncOperation", "https://"+r.Host+"/operations/1?api-version=2025-01-01")
			w.WriteHeader(http.StatusAccepted)
		case "GET /operations/1":
			fmt.Fprint(w, `{"status":"Succeeded"}`)
		default:
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}))
	t.Cleanup(manager.Close)
	identities := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-IDENTITY-HEADER") != "of-the-platform" || r.URL.Query().Get("resource") != manager.URL {
			t.Errorf("a token was asked for with %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"of-the-identity","expires_on":"%d","resource":%q,"token_type":"Bearer"}`, time.Now().Add(time.Hour).Unix(), manager.URL)
	}))
	t.Cleanup(identities.Close)
	return manager.URL, map[string]string{
		"IDENTITY_ENDPOINT": identities.URL, "IDENTITY_HEADER": "of-the-platform", "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
		"SSL_CERT_FILE": testworld.CertificateOf(t, manager),
	}
}

func TestConsumeSetsTheBoundsOfAContainerApp(t *testing.T) {
	t.Parallel()
	bus := startQueue(t, false)
	patched := make(chan string, 10)
	endpoint, settings := startAzure(t, patched)
	decided(t, bus, 5, map[string]string{"subscriptionId": "00000000-0000-0000-0000-00000000000a", "resourceGroup": "shop", "containerApp": "orders"})
	c := consuming(t, bus, settings, "--action", "containerapp", "--arm-endpoint", endpoint)
	settled(t, bus)
	c.stop()
	if log := c.stderr.String(); strings.Count(log, `"level":"WARN","msg":"Container Apps makes a new revision of every change of scale bounds`) != 1 {
		t.Errorf("the log does not say once what a change costs: %s", log)
	}
	if got, want := <-patched, `{"properties":{"template":{"revisionSuffix":null,"scale":{"minReplicas":5,"maxReplicas":5}}}}`; got != want || len(patched) != 0 {
		t.Errorf("patched with %s, and %d times more, want %s", got, len(patched), want)
	}
}

func TestADryRunOfConsumeSaysWhatItWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		target map[string]string
		says   string
	}{
		{"what would be scaled", map[string]string{"deployment": "orders"}, `"msg":"would act","processor":"orders","sequence":42,"desiredReplicas":5,"target":"Deployment shop/orders"`},
		{"what would be dead-lettered", nil, `"msg":"would be dead-lettered"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			bus := startQueue(t, false)
			scaled := make(chan int, 10)
			kubeconfig := startCluster(t, scaled, "")
			decided(t, bus, 5, c.target)
			consumption := consuming(t, bus, nil, "--action", "kubernetes", "--kubeconfig", kubeconfig, "--context", "shop", "--dry-run")
			settled(t, bus)
			consumption.stop()
			if len(scaled) != 0 || len(bus.Messages(testworld.Queue)) != 0 || !strings.Contains(consumption.stderr.String(), c.says) {
				t.Errorf("scaled %d times, %d messages are left, log %s", len(scaled), len(bus.Messages(testworld.Queue)), &consumption.stderr)
			}
		})
	}
}
