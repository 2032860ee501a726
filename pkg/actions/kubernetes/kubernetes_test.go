package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
	"github.com/feedscale/feedscale/pkg/events"
)

const ordersPath = "/apis/apps/v1/namespaces/staging/deployments/orders"

func wanting(replicas int, labels map[string]string) events.ScaleEvent {
	return events.ScaleEvent{Data: events.Data{Processor: "orders", DesiredReplicas: replicas, Target: labels}}
}

func orders(replicas int) events.ScaleEvent {
	return wanting(replicas, map[string]string{"deployment": "orders"})
}

func (s *apiServer) action(context string) *kubernetes.Action {
	s.t.Helper()
	a, err := kubernetes.New(kubernetes.Options{Kubeconfig: s.kubeconfig(token), Context: context})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func TestWhatATargetNamesIsScaled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		context string
		labels  map[string]string
		path    string
		target  string
	}{
		{"a Deployment, in the namespace of the current context", "", map[string]string{"deployment": "orders"}, ordersPath, "Deployment staging/orders"},
		{"a StatefulSet, in the namespace of another context", "production", map[string]string{"statefulset": "orders"},
			"/apis/apps/v1/namespaces/production/statefulsets/orders", "StatefulSet production/orders"},
		{"a context without a namespace means default", "bare", map[string]string{"deployment": "orders"}, "/apis/apps/v1/namespaces/default/deployments/orders", "Deployment default/orders"},
		{"the namespace of the target wins", "", map[string]string{"deployment": "orders", "namespace": "shop"}, "/apis/apps/v1/namespaces/shop/deployments/orders", "Deployment shop/orders"},
		{"a kind of the core group", "", map[string]string{"apiVersion": "v1", "kind": "ReplicationController", "name": "orders"},
			"/api/v1/namespaces/staging/replicationcontrollers/orders", "ReplicationController staging/orders"},
		{"a custom resource", "", map[string]string{"apiVersion": "example.com/v1", "kind": "Worker", "name": "orders.eu"},
			"/apis/example.com/v1/namespaces/staging/workers/orders.eu", "Worker staging/orders.eu"},
		{"an older version is scaled through the preferred one", "", map[string]string{"apiVersion": "example.com/v1alpha1", "kind": "Worker", "name": "orders"},
			"/apis/example.com/v1/namespaces/staging/workers/orders", "Worker staging/orders"},
		{"a resource of the cluster has no namespace", "", map[string]string{"apiVersion": "example.com/v1", "kind": "Pool", "name": "orders"},
			"/apis/example.com/v1/pools/orders", "Pool staging/orders"},
		{"other labels are somebody else's", "", map[string]string{"deployment": "orders", "name": "Orders!", "containerAppId": "x"}, ordersPath, "Deployment staging/orders"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.add(c.path, 1)
			a := s.action(c.context)
			e := wanting(5, c.labels)
			if target, err := a.Target(e); err != nil || target != c.target {
				t.Errorf("target %q, %v, want %q", target, err, c.target)
			}
			changed, err := a.Act(t.Context(), e)
			if err != nil || !changed {
				t.Fatalf("changed %v, %v", changed, err)
			}
			if got := s.replicas(c.path); got != 5 {
				t.Errorf("%d replicas, want 5", got)
			}
			want := []string{"GET " + c.path + "/scale", "PUT " + c.path + "/scale"}
			if i := strings.LastIndex(c.path, "/namespaces/"); i >= 0 { // something else may scale what is in a namespace
				namespace, _, _ := strings.Cut(c.path[i+len("/namespaces/"):], "/")
				want = slices.Insert(want, 1, "GET "+strings.Replace(scaledObjectsPath, "staging", namespace, 1), "GET "+strings.Replace(hpasPath, "staging", namespace, 1))
			}
			if !reflect.DeepEqual(s.requests, want) {
				t.Errorf("got %q, want %q", s.requests, want)
			}
		})
	}
}

func TestReplicasThatAreThereAlreadyAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{0, 5} {
		s := newAPIServer(t)
		s.add(ordersPath, replicas)
		changed, err := s.action("").Act(t.Context(), orders(replicas))
		if err != nil || changed || len(s.requests) != 1 {
			t.Errorf("%d replicas: changed %v, %v, %q", replicas, changed, err, s.requests)
		}
	}
}

func TestScalingToZeroIsScaling(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.add(ordersPath, 3)
	changed, err := s.action("").Act(t.Context(), orders(0))
	if err != nil || !changed || s.replicas(ordersPath) != 0 {
		t.Errorf("changed %v, %v, %d replicas", changed, err, s.replicas(ordersPath))
	}
}

func TestAWriteOfSomebodyElseIsReadAndFollowedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		rival    int
		changed  bool
		requests int
	}{
		{"one", 1, true, 4 + 2*2}, // and what else scales, before each write
		{"more leave the event to the next try", 2, false, 4 + 2*2},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.add(ordersPath, 1)
			s.rival = c.rival
			changed, err := s.action("").Act(t.Context(), orders(5))
			if changed != c.changed || (err == nil) != c.changed || errors.Is(err, events.ErrDeadLetter) || len(s.requests) != c.requests {
				t.Errorf("changed %v, %v, %q", changed, err, s.requests)
			}
		})
	}
}

func TestSeveralObjectsAreScaledAtOnce(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	a := s.action("")
	var acting sync.WaitGroup
	for n := range 20 {
		name := fmt.Sprintf("orders-%d", n)
		s.add("/apis/apps/v1/namespaces/staging/deployments/"+name, 0)
		acting.Go(func() {
			if changed, err := a.Act(t.Context(), wanting(n+1, map[string]string{"deployment": name})); err != nil || !changed {
				t.Errorf("%s: changed %v, %v", name, changed, err)
			}
		})
	}
	acting.Wait()
	for n := range 20 {
		if got := s.replicas(fmt.Sprintf("/apis/apps/v1/namespaces/staging/deployments/orders-%d", n)); got != n+1 {
			t.Errorf("orders-%d has %d replicas", n, got)
		}
	}
}

func TestAnAggregatedAPIOutOfOrderIsNoObstacle(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.broken = true
	s.add(ordersPath, 1)
	if changed, err := s.action("").Act(t.Context(), orders(5)); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestWhatTheClusterRefusesSaysWhatToDoAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	generic := func(version, kind string) map[string]string {
		return map[string]string{"apiVersion": version, "kind": kind, "name": "orders"}
	}
	for _, c := range []struct {
		rule   string
		labels map[string]string
		refuse map[string]int
		says   string
		policy string
	}{
		{"an admission policy", nil, nil, "or change what refuses it, such as an admission policy, a webhook or a quota: ", "at most 4 replicas"},
		{"an object that is not there", map[string]string{"deployment": "missing"}, nil,
			"Deployment staging/missing does not exist, or cannot be scaled: create it, or correct the target labels of the processor", ""},
		{"a kind that cannot be scaled", generic("apps/v1", "DaemonSet"), nil, "DaemonSet staging/orders does not exist, or cannot be scaled", ""},
		{"a kind that is not installed", generic("keda.sh/v1alpha1", "ScaledJob"), nil,
			"the cluster has no kind ScaledJob in keda.sh/v1alpha1: install it, or correct the target labels of the processor", ""},
		{"a version that is not served", generic("apps/v1beta1", "Deployment"), nil, "the cluster has no kind Deployment in apps/v1beta1", ""},
		{"no right to read", nil, map[string]int{http.MethodGet: http.StatusForbidden},
			`the cluster refuses to scale Deployment staging/orders: bind this account to a role with the verbs get and update on deployments/scale in apiGroup "apps"`, ""},
		{"no right to write", nil, map[string]int{http.MethodPut: http.StatusForbidden}, "bind this account to a role with the verbs get and update on deployments/scale", ""},
		{"an API server in trouble", nil, map[string]int{http.MethodPut: http.StatusInternalServerError}, "cannot scale Deployment staging/orders: ", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.add(ordersPath, 1)
			s.refuse, s.policy = c.refuse, c.policy
			e := orders(5)
			if c.labels != nil {
				e = wanting(5, c.labels)
			}
			changed, err := s.action("").Act(t.Context(), e)
			if err == nil || changed || errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.policy) {
				t.Errorf("changed %v, got %v", changed, err)
			}
			if role := strings.Contains(err.Error(), "bind it to a role"); c.policy != "" && role {
				t.Errorf("a role is named: %v", err)
			}
		})
	}
}

func TestCredentialsThatAreRefusedAreNotShown(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	a, err := kubernetes.New(kubernetes.Options{Kubeconfig: s.kubeconfig("hidden")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Act(t.Context(), orders(5))
	if err == nil || !strings.Contains(err.Error(), "the cluster does not accept the credentials") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

// TestAClusterThatWasAwayIsFoundAgain: a failed discovery is not remembered.
func TestAClusterThatWasAwayIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.add(ordersPath, 1)
	a := s.action("")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := a.Act(ended, orders(5)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if changed, err := a.Act(t.Context(), orders(5)); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestAKindThatIsInstalledLaterIsFoundByTheNextTry(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.bare = true
	s.add("/apis/example.com/v1/namespaces/staging/workers/orders", 1)
	a := s.action("")
	e := wanting(5, map[string]string{"apiVersion": "example.com/v1", "kind": "Worker", "name": "orders"})
	if _, err := a.Act(t.Context(), e); err == nil || !strings.Contains(err.Error(), "the cluster has no kind Worker in example.com/v1: install it") {
		t.Errorf("got %v", err)
	}
	s.mu.Lock()
	s.bare = false
	s.mu.Unlock()
	if changed, err := a.Act(t.Context(), e); err != nil || !changed {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestMistakesOfTheConfigurationAreFoundAtTheStart(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	broken := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(broken, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for rule, c := range map[string]struct {
		options kubernetes.Options
		says    string
	}{
		"a file that is not there":        {kubernetes.Options{Kubeconfig: broken + "s"}, broken + "s"},
		"a file that is no kubeconfig":    {kubernetes.Options{Kubeconfig: broken}, broken},
		"a context that the file has not": {kubernetes.Options{Kubeconfig: s.kubeconfig(token), Context: "elsewhere"}, "elsewhere"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			_, err := kubernetes.New(c.options)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "finding the cluster") {
				t.Errorf("got %v", err)
			}
		})
	}
}
