package kubernetes_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const token = "the-token-of-feedscale"

// apiServer is a stand-in for the API server of a cluster: discovery, scale subresources with
// optimistic concurrency, and lists of what scales.
type apiServer struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	objects  map[string]*object // by the path of the object
	requests []string           // "METHOD path" of scale subresources
	rival    int                // how many reads are followed by a write of somebody else
	refuse   map[string]int     // statuses, by method: 403 is that of authorization
	policy   string             // why an admission policy denies every write; "" = it does not
	broken   bool               // an aggregated API is out of order
	bare     bool               // nothing is installed that the cluster does not come with
	keda     bool               // KEDA is installed
	lists    map[string][]any   // items, by the path of the list
	unlisted map[string]bool    // resources that nobody may list
}

type object struct {
	replicas, version int
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{t: t, objects: make(map[string]*object), refuse: make(map[string]int), lists: make(map[string][]any), unlisted: make(map[string]bool)}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) add(path string, replicas int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = &object{replicas: replicas, version: 1}
}

func (s *apiServer) replicas(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[path].replicas
}

// kubeconfig writes a kubeconfig whose current context has the namespace staging, and whose context
// production has the namespace production.
func (s *apiServer) kubeconfig(token string) string {
	s.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	folder := s.t.TempDir()
	caFile, file := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: staging,
		clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}],
		users: [{name: u, user: {token: %q}}],
		contexts: [{name: staging, context: {cluster: c, user: u, namespace: staging}}, {name: production, context: {cluster: c, user: u, namespace: production}}, {name: bare, context: {cluster: c, user: u}}]}`,
		s.URL, caFile, token)
	for name, content := range map[string][]byte{caFile: ca, file: []byte(text)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return file
}

// kind is what discovery says about a resource.
type kind struct {
	name       string
	kind       string
	namespaced bool
	scale      bool
}

// resources are the resources of the cluster, by group and version.
func resources(groupVersion string) []kind {
	return map[string][]kind{
		"v1":                   {{"replicationcontrollers", "ReplicationController", true, true}, {"pods", "Pod", true, false}},
		"apps/v1":              {{"deployments", "Deployment", true, true}, {"statefulsets", "StatefulSet", true, true}, {"daemonsets", "DaemonSet", true, false}},
		"example.com/v1":       {{"workers", "Worker", true, true}, {"pools", "Pool", false, true}},
		"example.com/v1alpha1": {{"workers", "Worker", true, true}},
		"autoscaling/v2":       {{"horizontalpodautoscalers", "HorizontalPodAutoscaler", true, false}},
		"keda.sh/v1alpha1":     {{"scaledobjects", "ScaledObject", true, false}},
	}[groupVersion]
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		s.fail(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	if agent := r.Header.Get("User-Agent"); agent != "feedscale" {
		s.t.Errorf("User-Agent is %q", agent)
	}
	path := strings.Trim(r.URL.Path, "/")
	switch parent, isScale := strings.CutSuffix(r.URL.Path, "/scale"); {
	case strings.Contains(r.URL.Path, "/namespaces/") && !isScale:
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.list(w, r.URL.Path)
	case isScale:
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.scale(w, r, parent)
	case path == "api":
		s.write(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case path == "apis":
		s.write(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": s.groups()})
	case path == "apis/keda.sh/v1alpha1" && !s.keda:
		http.NotFound(w, r)
	default:
		groupVersion := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
		list := resources(groupVersion)
		if list == nil {
			s.fail(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
			return
		}
		s.write(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": listed(list)})
	}
}

func (s *apiServer) groups() []any {
	group := func(name string, versions ...string) map[string]any {
		var list []any
		for _, v := range versions {
			list = append(list, map[string]any{"groupVersion": name + "/" + v, "version": v})
		}
		return map[string]any{"name": name, "versions": list, "preferredVersion": list[0]}
	}
	groups := []any{group("apps", "v1"), group("autoscaling", "v2")}
	if s.keda {
		groups = append(groups, group("keda.sh", "v1alpha1"))
	}
	if !s.bare {
		groups = append(groups, group("example.com", "v1", "v1alpha1"))
	}
	if s.broken {
		groups = append(groups, group("metrics.example.com", "v1"))
	}
	return groups
}

func listed(kinds []kind) []any {
	var list []any
	for _, k := range kinds {
		list = append(list, map[string]any{"name": k.name, "singularName": "", "namespaced": k.namespaced, "kind": k.kind, "verbs": []string{"get", "list", "update"}})
		if k.scale {
			list = append(list, map[string]any{"name": k.name + "/scale", "singularName": "", "namespaced": k.namespaced, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": []string{"get", "patch", "update"}})
		}
	}
	return list
}

// list answers for /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE. Permissions come before
// existence: who may not list gets 403 for a resource that is not installed, too
// (DefaultBuildHandlerChain in staging/src/k8s.io/apiserver/pkg/server/config.go of
// github.com/kubernetes/kubernetes).
func (s *apiServer) list(w http.ResponseWriter, path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, version, namespace, resource := parts[1], parts[2], parts[4], parts[5]
	switch {
	case s.unlisted[resource]:
		s.fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s.%s is forbidden: User %[3]q cannot list resource %[1]q in API group %[2]q in the namespace %[4]q", resource, group, "feedscale", namespace))
	case group == "keda.sh" && !s.keda:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintln(w, "404 page not found")
	default:
		s.write(w, map[string]any{
			"kind": resources(group + "/" + version)[0].kind + "List", "apiVersion": group + "/" + version,
			"metadata": map[string]any{"resourceVersion": "7"}, "items": append([]any{}, s.lists[path]...),
		})
	}
}

// scaleObject is autoscaling/v1.Scale on the wire.
type scaleObject struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace,omitempty"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas,omitempty"` // which is how the API server writes zero
	} `json:"spec"`
	Status struct {
		Replicas int `json:"replicas"`
	} `json:"status"`
}

func (s *apiServer) scale(w http.ResponseWriter, r *http.Request, path string) {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-1]
	o := s.objects[path]
	switch status := s.refuse[r.Method]; {
	case status == http.StatusForbidden:
		verb := map[string]string{http.MethodGet: "get", http.MethodPut: "update"}[r.Method]
		s.fail(w, status, "Forbidden", fmt.Sprintf("deployments.apps %q is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q", name, "feedscale", verb, "deployments/scale", "apps", "staging"))
		return
	case s.policy != "" && r.Method == http.MethodPut:
		// As a ValidatingAdmissionPolicy does whose reason is Forbidden.
		s.fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("deployments.apps %q is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'all' denied request: %s", name, s.policy))
		return
	case status != 0:
		s.fail(w, status, "InternalError", "out of order")
		return
	case o == nil:
		s.fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%q not found", name))
		return
	}
	if r.Method == http.MethodPut {
		var change scaleObject
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			s.t.Error(err)
		}
		if change.Kind != "Scale" || change.APIVersion != "autoscaling/v1" || change.Metadata.Name != name {
			s.t.Errorf("PUT %s: %+v", path, change)
		}
		if change.Metadata.ResourceVersion != strconv.Itoa(o.version) {
			s.fail(w, http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again")
			return
		}
		o.replicas, o.version = change.Spec.Replicas, o.version+1
	}
	var answer scaleObject
	answer.Kind, answer.APIVersion = "Scale", "autoscaling/v1"
	answer.Metadata.Name, answer.Metadata.ResourceVersion = name, strconv.Itoa(o.version)
	answer.Spec.Replicas = o.replicas
	s.write(w, answer)
	if r.Method == http.MethodGet && s.rival > 0 {
		s.rival--
		o.version++
	}
}

func (s *apiServer) fail(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	s.encode(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": status})
}

func (s *apiServer) write(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	s.encode(w, body)
}

func (s *apiServer) encode(w http.ResponseWriter, body any) {
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Error(err)
	}
}
