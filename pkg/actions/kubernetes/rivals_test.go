package kubernetes_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
)

const (
	hpasPath          = "/apis/autoscaling/v2/namespaces/staging/horizontalpodautoscalers"
	scaledObjectsPath = "/apis/keda.sh/v1alpha1/namespaces/staging/scaledobjects"
)

// has puts objects into a list, each of them YAML as kubectl shows it.
func (s *apiServer) has(path string, objects ...string) {
	s.t.Helper()
	for _, text := range objects {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			s.t.Fatal(err)
		}
		s.lists[path] = append(s.lists[path], object)
	}
}

const (
	ordersHPA = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: orders-cpu, namespace: staging, creationTimestamp: "2026-01-02T03:04:05Z"},
		spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}}, status: {currentReplicas: 1, desiredReplicas: 1}}`
	ordersScaledObject = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: orders-so, namespace: staging},
		spec: {scaleTargetRef: {name: orders}, triggers: [{type: cpu, metadata: {value: "50"}}]}}`
)

func TestWhatElseScalesATargetIsFound(t *testing.T) {
	t.Parallel()
	orders := map[string]string{"deployment": "orders"}
	hpa := actions.Rival{Name: "HPA orders-cpu", Remove: "kubectl delete hpa orders-cpu -n staging"}
	scaledObject := actions.Rival{Name: "ScaledObject orders-so", Remove: "kubectl delete scaledobject orders-so -n staging",
		Triggers: []actions.Trigger{{Type: "cpu", Metadata: map[string]string{"value": "50"}}}}
	paused := scaledObject
	paused.Paused = true
	kept := func(metadata string) string {
		return strings.Replace(strings.Replace(ordersHPA, "orders-cpu", "keda-hpa-orders-so", 1), "namespace: staging", "namespace: staging, "+metadata, 1)
	}
	annotated := func(annotations string) []string {
		return []string{strings.Replace(ordersScaledObject, "namespace: staging", "namespace: staging, annotations: {"+annotations+"}", 1)}
	}
	for _, c := range []struct {
		rule                string
		labels              map[string]string
		hpas, scaledObjects []string
		want                []actions.Rival
	}{
		{"none", orders, nil, nil, nil},
		{"an HPA", orders, []string{ordersHPA}, nil, []actions.Rival{hpa}},
		{"an HPA of another version of the kind", map[string]string{"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "orders"}, []string{ordersHPA}, nil, []actions.Rival{hpa}},
		{"an HPA of another object", orders, []string{strings.Replace(ordersHPA, "name: orders}", "name: payments}", 1)}, nil, nil},
		{"an HPA of another kind with the name", map[string]string{"statefulset": "orders"}, []string{ordersHPA}, nil, nil},
		{"an HPA of another group's kind", orders, []string{strings.Replace(ordersHPA, "apps/v1", "example.com/v1", 1)}, nil, nil},
		{"a ScaledObject means a Deployment where it does not say", orders, nil, []string{ordersScaledObject}, []actions.Rival{scaledObject}},
		{"and apps where it says a kind alone", map[string]string{"statefulset": "orders"}, nil, []string{strings.Replace(ordersScaledObject, "{name: orders}", "{kind: StatefulSet, name: orders}", 1)}, []actions.Rival{scaledObject}},
		{"a ScaledObject of another kind with the name", orders, nil, []string{strings.Replace(ordersScaledObject, "{name: orders}", "{kind: StatefulSet, name: orders}", 1)}, nil},
		{"both", orders, []string{ordersHPA}, []string{ordersScaledObject}, []actions.Rival{scaledObject, hpa}},
		{"a ScaledObject is told once with the HPA that has its label", orders, []string{kept("labels: {scaledobject.keda.sh/name: orders-so}")}, []string{ordersScaledObject}, []actions.Rival{scaledObject}},
		{"an HPA whose ScaledObject is gone is told itself", orders, []string{strings.Replace(ordersHPA, "namespace: staging", "namespace: staging, labels: {scaledobject.keda.sh/name: gone}", 1)}, []string{ordersScaledObject},
			[]actions.Rival{scaledObject, hpa}},
		{"a paused ScaledObject", orders, nil, annotated(`autoscaling.keda.sh/paused: "true"`), []actions.Rival{paused}},
		{"paused is what is not false", orders, nil, annotated(`autoscaling.keda.sh/paused: "yes"`), []actions.Rival{paused}},
		{"a ScaledObject that is resumed", orders, nil, annotated(`autoscaling.keda.sh/paused: "false"`), []actions.Rival{scaledObject}},
		{"one that is held at a count sets it", orders, nil, annotated(`autoscaling.keda.sh/paused-replicas: "3"`), []actions.Rival{scaledObject}},
		{"whether paused or not", orders, nil, annotated(`autoscaling.keda.sh/paused: "true", autoscaling.keda.sh/paused-replicas: "3"`), []actions.Rival{scaledObject}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.keda = true
			s.has(hpasPath, c.hpas...)
			s.has(scaledObjectsPath, c.scaledObjects...)
			seen, err := s.action("").Rivals(t.Context(), c.labels)
			if err != nil || !reflect.DeepEqual(seen.Rivals, c.want) {
				t.Errorf("got  %+v, %v\nwant %+v", seen.Rivals, err, c.want)
			}
			if seen.Where != "cluster "+s.URL {
				t.Errorf("looked for in %q", seen.Where)
			}
			if want := []string{"GET " + scaledObjectsPath, "GET " + hpasPath}; !reflect.DeepEqual(s.requests, want) {
				t.Errorf("requests %q, want %q", s.requests, want)
			}
		})
	}
}

func TestRivalsAreLookedForInTheNamespaceOfTheTarget(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t)
	s.has(strings.Replace(hpasPath, "staging", "shop", 1), strings.Replace(ordersHPA, "namespace: staging", "namespace: shop", 1))
	a := s.action("")
	here, err := a.Rivals(t.Context(), map[string]string{"deployment": "orders"})
	if err != nil || here.Target != "Deployment staging/orders" || len(here.Rivals) != 0 {
		t.Errorf("got %+v, %v", here, err)
	}
	there, err := a.Rivals(t.Context(), map[string]string{"deployment": "orders", "namespace": "shop"})
	if err != nil || there.Target != "Deployment shop/orders" || len(there.Rivals) != 1 || there.Rivals[0].Remove != "kubectl delete hpa orders-cpu -n shop" {
		t.Errorf("got %+v, %v", there, err)
	}
}

func TestWhatKeepsRivalsFromBeingSeenIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		keda     bool
		unlisted string
		token    string
		says     string // "" = all is seen
	}{
		{"a cluster without KEDA has no ScaledObjects", false, "", token, ""},
		{"ScaledObjects that may not be listed", true, "scaledobjects", token, `the cluster refuses to list scaledobjects in namespace staging: bind this account to a role with the verb list on scaledobjects in apiGroup "keda.sh"`},
		{"HPAs that may not be listed", true, "horizontalpodautoscalers", token, `the cluster refuses to list horizontalpodautoscalers in namespace staging: bind this account to a role with the verb list on horizontalpodautoscalers in apiGroup "autoscaling"`},
		{"credentials that are not accepted", true, "", "another", "the cluster does not accept the credentials"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			s.keda, s.unlisted[c.unlisted] = c.keda, true
			s.has(hpasPath, ordersHPA)
			a, err := kubernetes.New(kubernetes.Options{Kubeconfig: s.kubeconfig(c.token)})
			if err != nil {
				t.Fatal(err)
			}
			seen, err := a.Rivals(t.Context(), map[string]string{"deployment": "orders"})
			if seen.Target != "Deployment staging/orders" {
				t.Errorf("target %q", seen.Target)
			}
			switch {
			case c.says == "" && (err != nil || len(seen.Rivals) != 1):
				t.Errorf("got %+v, %v; want the HPA", seen, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, want %s", err, c.says)
			}
		})
	}
}

// TestRivalsAreLookedForAsKubectlWould sets the environment, and so is not parallel.
func TestRivalsAreLookedForAsKubectlWould(t *testing.T) {
	s := newAPIServer(t)
	s.has(hpasPath, ordersHPA)
	orders := map[string]string{"deployment": "orders"}
	t.Run("in the cluster of KUBECONFIG", func(t *testing.T) {
		t.Setenv("KUBECONFIG", s.kubeconfig(token))
		seen, err := kubernetes.Kind().Rivals(t.Context(), orders)
		if err != nil || seen.Target != "Deployment staging/orders" || len(seen.Rivals) != 1 {
			t.Errorf("got %+v, %v", seen, err)
		}
	})
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Run("where no cluster is configured", func(t *testing.T) {
		seen, err := kubernetes.Kind().Rivals(t.Context(), orders)
		if err == nil || !strings.HasPrefix(err.Error(), "finding the cluster, run in a pod of it or name a kubeconfig") || seen.Target != "Deployment orders" {
			t.Errorf("got %+v, %v", seen, err)
		}
	})
	t.Run("nowhere for a target of another action", func(t *testing.T) {
		seen, err := kubernetes.Kind().Rivals(t.Context(), map[string]string{"containerAppId": "x"})
		if err != nil || seen.Target != "" {
			t.Errorf("got %+v, %v", seen, err)
		}
	})
}
