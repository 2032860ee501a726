package keda_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// cluster is a double of the API server for `consume --action kubernetes`: discovery, and the scale
// subresource of any Deployment. No HPA and no KEDA is there.
type cluster struct {
	*httptest.Server
	scaled func(deployment string, replicas int, at time.Time)

	mu       sync.Mutex
	versions map[string]int
	replicas map[string]int
}

func startCluster(t *testing.T, scaled func(deployment string, replicas int, at time.Time)) *cluster {
	t.Helper()
	c := &cluster{scaled: scaled, versions: make(map[string]int), replicas: make(map[string]int)}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

// kubeconfig is a file with one whose namespace is that of the Deployments.
func (c *cluster) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	testworld.Must(t, os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: shop,
		clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: u, user: {token: t}}],
		contexts: [{name: shop, context: {cluster: c, user: u, namespace: %s}}]}`, c.URL, testworld.CertificateOf(t, c.Server), namespace), 0o600))
	return file
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parent, isScale := strings.CutSuffix(r.URL.Path, "/scale")
	if name, isDeployment := strings.CutPrefix(parent, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"); isDeployment && isScale {
		c.scale(w, r, name)
		return
	}
	answer, ok := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[` +
			`{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]},` +
			`{"name":"deployments/scale","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","update"]}]}`,
		"/apis/autoscaling/v2/namespaces/" + namespace + "/horizontalpodautoscalers": `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v2","metadata":{},"items":[]}`,
	}[r.URL.Path]
	if !ok {
		http.NotFound(w, r) // as for what is not installed
		return
	}
	fmt.Fprint(w, answer)
}

func (c *cluster) scale(w http.ResponseWriter, r *http.Request, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodPut {
		var change struct {
			Metadata struct{ ResourceVersion string }
			Spec     struct{ Replicas int }
		}
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil || change.Metadata.ResourceVersion != fmt.Sprint(c.versions[name]+1) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"the object has been modified","code":409}`)
			return
		}
		c.versions[name]++
		c.replicas[name] = change.Spec.Replicas
		c.scaled(name, change.Spec.Replicas, time.Now())
	}
	fmt.Fprintf(w, `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d"},"spec":{"replicas":%d},"status":{"replicas":%[4]d}}`,
		name, namespace, c.versions[name]+1, c.replicas[name])
}
