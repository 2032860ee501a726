package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// scalerOf is an object of the namespace shop that scales a Deployment.
func scalerOf(apiVersion, kind, name, deployment string, annotations map[string]string, triggers ...any) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "annotations": annotations},
		"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}, "triggers": triggers},
	}
}

func trigger(kind string, metadata map[string]string) any {
	return map[string]any{"type": kind, "metadata": metadata}
}

// startCluster returns the kubeconfig of an API server that has lists, by path. What it knows of
// permissions and of clusters without KEDA is tested in pkg/actions/kubernetes.
func startCluster(t *testing.T, lists map[string][]any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items, ok := lists[r.URL.Path]
		if !ok || r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		first := items[0].(map[string]any)
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"kind": first["kind"].(string) + "List", "apiVersion": first["apiVersion"], "metadata": map[string]any{}, "items": items}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "config")
	testworld.Must(t, os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}]}`, s.URL), 0o600))
	return file
}

// targets are the lines about what is scaled.
func targets(r check.Report) []check.Line {
	return slices.DeleteFunc(slices.Clone(r.Checks), func(l check.Line) bool { return l.Check != "scale target" })
}

func TestWhatFightsOverATargetIsSaidWithWhatEndsIt(t *testing.T) {
	t.Parallel()
	paused := map[string]string{"autoscaling.keda.sh/paused": "true"}
	asking := func(processor string) any {
		return trigger("metrics-api", map[string]string{"url": "https://scaler.example/api/processors/" + processor, "valueLocation": "desiredReplicas"})
	}
	scaledObject := func(name, deployment string, annotations map[string]string, triggers ...any) any {
		return scalerOf("keda.sh/v1alpha1", "ScaledObject", name, deployment, annotations, triggers...)
	}
	cases := []struct {
		rule, deployment    string
		hpas, scaledObjects []any
		status              check.Status
		detail, fix         string // a part of the detail; the fix until its comment
	}{
		{"nothing", "alone", nil, nil, check.OK, "nothing else acts on it in cluster http://127.0.0.1:", ""},
		{"an HPA", "by-hpa", []any{scalerOf("autoscaling/v2", "HorizontalPodAutoscaler", "cpu", "by-hpa", nil)}, nil,
			check.Fail, "HPA cpu and feedscale would undo", "kubectl delete hpa cpu -n shop"},
		{"a ScaledObject that asks others", "by-cron", nil, []any{scaledObject("cron", "by-cron", nil, trigger("cron", nil))},
			check.Fail, "ScaledObject cron and feedscale would undo", "kubectl delete scaledobject cron -n shop"},
		{"one that asks another API", "by-api", nil, []any{scaledObject("api", "by-api", nil, trigger("metrics-api", map[string]string{"url": "https://shop.example/api/orders?of=/api/processors/"}))},
			check.Fail, "ScaledObject api and feedscale would undo", "kubectl delete scaledobject api -n shop"},
		{"one that asks another external scaler", "by-external", nil, []any{scaledObject("external", "by-external", nil, trigger("external", map[string]string{"scalerAddress": "cosmos-scaler.keda:4050"}))},
			check.Fail, "ScaledObject external and feedscale would undo", "kubectl delete scaledobject external -n shop"},
		{"one that asks feedscale", "by-feedscale", nil, []any{scaledObject("asking", "by-feedscale", nil, asking("by-feedscale"))}, check.OK, "ScaledObject asking asks feedscale", ""},
		{"one that asks feedscale's API for another processor", "by-slip", nil, []any{scaledObject("slip", "by-slip", nil, asking("by-feedscale"))},
			check.Fail, "ScaledObject slip and feedscale would undo", "kubectl delete scaledobject slip -n shop"},
		{"one that asks feedscale among others", "by-both", nil, []any{scaledObject("both", "by-both", nil, trigger("cron", nil), asking("by-both"))}, check.OK, "ScaledObject both asks feedscale", ""},
		{"one that asks feedscale's external scaler, whatever its Service is called", "by-push", nil, []any{scaledObject("push", "by-push", nil, trigger("external-push", map[string]string{"scalerAddress": "scaling.shop:6000", "processor": "by-push"}))},
			check.OK, "ScaledObject push asks feedscale", ""},
		{"one that asks feedscale for another processor", "by-mistake", nil, []any{scaledObject("mistake", "by-mistake", nil, trigger("external", map[string]string{"scalerAddress": "feedscale.shop:6000", "processor": "by-push"}))},
			check.Fail, "ScaledObject mistake and feedscale would undo", "kubectl delete scaledobject mistake -n shop"},
		{"an HPA beside one that asks feedscale", "by-two", []any{scalerOf("autoscaling/v2", "HorizontalPodAutoscaler", "memory", "by-two", nil)}, []any{scaledObject("asks", "by-two", nil, asking("by-two"))},
			check.Fail, "HPA memory and feedscale would undo", "kubectl delete hpa memory -n shop"},
		{"two that ask others", "by-many", []any{scalerOf("autoscaling/v2", "HorizontalPodAutoscaler", "many", "by-many", nil)}, []any{scaledObject("more", "by-many", nil, trigger("cron", nil))},
			check.Fail, "ScaledObject more, HPA many and feedscale would undo", "kubectl delete scaledobject more -n shop && kubectl delete hpa many -n shop"},
		{"a paused one", "by-paused", nil, []any{scaledObject("resting", "by-paused", paused, trigger("cron", nil))}, check.OK, "ScaledObject resting is paused; it acts on it again once it is resumed", ""},
		{"a paused one that asks feedscale", "by-resting", nil, []any{scaledObject("waiting", "by-resting", paused, asking("by-resting"))}, check.OK, "ScaledObject waiting asks feedscale, and is paused", ""},
	}
	lists := make(map[string][]any)
	processors := "{name: both-a, processorName: a, group: both, target: {deployment: by-cron}}, {name: both-b, processorName: b, group: both}, " +
		"{name: apps, processorName: c, target: {containerAppId: x}}, {name: none, processorName: d}"
	for i, c := range cases {
		processors += fmt.Sprintf(", {name: %s, processorName: p%d, target: {deployment: %[1]s}}", c.deployment, i)
		const hpas, objects = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers", "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects"
		lists[hpas], lists[objects] = append(lists[hpas], c.hpas...), append(lists[objects], c.scaledObjects...)
	}
	lists["/apis/autoscaling/v2/namespaces/crew/horizontalpodautoscalers"] = []any{scalerOf("autoscaling/v2", "HorizontalPodAutoscaler", "crew", "both", nil)}
	_, p := checking(t, cosmosfake.Options{})
	p.settings["FEEDSCALE_PROCESSORS"] = "{defaults: {connection: COSMOS, databaseId: shop, containerId: orders}, processors: [" + processors + "], groups: [{name: both, target: {deployment: both, namespace: crew}}]}"
	p.settings["KUBECONFIG"] = startCluster(t, lists)
	got, r := p.checkApart(t)
	if got.OK || r.Stderr != "" {
		t.Errorf("ok is %v, standard error %q", got.OK, r.Stderr)
	}
	lines := make(map[string]check.Line)
	for _, l := range targets(got) {
		lines[l.Target] = l
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			l, fix := lines["Deployment shop/"+c.deployment], ""
			if l.Fix != nil {
				fix, _, _ = strings.Cut(*l.Fix, "   # or take feedscale as the trigger")
			}
			if l.Status != c.status || !strings.Contains(l.Detail, c.detail) || fix != c.fix || !slices.Equal(l.Processors, []string{c.deployment}) {
				t.Errorf("got  %+v, fix %q\nwant %s, %s, %q", l, fix, c.status, c.detail, c.fix)
			}
		})
	}
	t.Run("a group, in place of its members", func(t *testing.T) {
		t.Parallel()
		l := lines["Deployment crew/both"]
		if l.Status != check.Fail || !strings.HasPrefix(l.Detail, "HPA crew and feedscale would undo") || !slices.Equal(l.Processors, []string{"both-a", "both-b"}) {
			t.Errorf("got %+v", l)
		}
	})
	if len(targets(got)) != len(cases)+1 {
		t.Errorf("%d lines, want one for each target that names a Deployment, and for the group:\n%s", len(targets(got)), r.Stdout)
	}
}

func TestATargetIsSkippedWhereNoClusterIsConfigured(t *testing.T) {
	t.Parallel()
	w, p := checking(t, cosmosfake.Options{})
	w.Put(testworld.Leases, w.LeasesOf("a", testworld.OrdersHost, testworld.Orders).DotNetPK("0", leasefake.Range{Max: "FF"}, testworld.At(0)))
	p.settings["FEEDSCALE_PROCESSORS"] = `{defaults: {connection: COSMOS, databaseId: shop, containerId: orders, accountHost: ` + testworld.OrdersHost + `}, processors: [
		{name: orders, target: {deployment: orders, namespace: shop}}, {name: apps, processorName: a, target: {containerAppId: x}}]}`
	got, r := p.checkApart(t)
	lines := targets(got)
	if !got.OK || len(lines) != 1 || lines[0].Status != check.Skip || lines[0].Target != "Deployment shop/orders" || !strings.HasPrefix(lines[0].Detail, "finding the cluster, run in a pod of it or name a kubeconfig") {
		t.Errorf("got %s", r.Stdout)
	}
}
