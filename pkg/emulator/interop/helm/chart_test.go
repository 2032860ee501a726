package helm

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const (
	chartFolder = "../../../../infra/helm/feedscale"
	sampleFile  = "../../../../infra/kubernetes/feedscale.yaml"
)

var update = flag.Bool("update", false, "write infra/kubernetes/feedscale.yaml anew")

// sets are the sets of values that are rendered: testdata/NAME.yaml.
var sets = []string{"kubernetes", "minimal", "two", "monitored", "consume"}

func valuesOf(t *testing.T, set string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", set+".yaml"))
	testworld.Must(t, err)
	var values map[string]any
	testworld.Must(t, yaml.Unmarshal(text, &values))
	return values
}

// template does what `helm template feedscale` does.
func template(values map[string]any) (string, error) {
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "feedscale", "scaling"
	oldest, err := common.ParseKubeVersion("v1.29.0") // that Chart.yaml allows
	if err != nil {
		return "", err
	}
	install.KubeVersion = oldest
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	made, err := install.Run(chart, values)
	if err != nil {
		return "", err
	}
	return made.(*release.Release).Manifest, nil
}

// objects reads a manifest as an API server does that validates fields strictly.
func objects(t *testing.T, manifest string) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	testworld.Must(t, scheme.AddToScheme(known))
	testworld.Must(t, monitoring.AddToScheme(known))
	strict := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	decoder := yaml.NewDecoder(strings.NewReader(manifest))
	var found []runtime.Object
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		testworld.Must(t, err)
		text, err := yaml.Marshal(&document)
		testworld.Must(t, err)
		o, _, err := strict.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		found = append(found, o)
	}
}

func render(t *testing.T, set string) []runtime.Object {
	t.Helper()
	manifest, err := template(valuesOf(t, set))
	testworld.Must(t, err)
	return objects(t, manifest)
}

// all returns the objects of a type.
func all[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// the returns the object of a type and a name.
func the[T runtime.Object](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	for _, o := range all[T](objects) {
		if any(o).(metav1.Object).GetName() == name {
			return o
		}
	}
	t.Fatalf("there is no %T %s", *new(T), name)
	return *new(T)
}

func TestHelmLintsTheChartWithEachSetOfValues(t *testing.T) {
	for _, set := range sets {
		lint := action.NewLint()
		lint.Strict = true
		result := lint.Run([]string{chartFolder}, valuesOf(t, set))
		for _, message := range result.Messages {
			if !strings.Contains(message.Error(), "icon is recommended") {
				t.Errorf("%s: %v", set, message)
			}
		}
		if result.TotalChartsLinted != 1 {
			t.Errorf("%s: %v", set, result.Errors)
		}
	}
}

// TestEachSetOfValuesRendersWhatTheKindsHave also follows each name from one object to another.
func TestEachSetOfValuesRendersWhatTheKindsHave(t *testing.T) {
	kinds := map[string][]string{
		"kubernetes": nil,
		"minimal":    {"Secret"},
		"two":        {"PodDisruptionBudget", "Secret"},
		"monitored":  {"PrometheusRule", "Secret", "ServiceMonitor"},
		"consume":    {"Role", "RoleBinding"},
	}
	without := map[string][]string{"two": {"NetworkPolicy", "PersistentVolumeClaim"}, "consume": {"PersistentVolumeClaim"}}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			rendered := render(t, set)
			got := map[string]bool{}
			for _, o := range rendered {
				got[o.GetObjectKind().GroupVersionKind().Kind] = true
			}
			want := append([]string{"ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Service", "ServiceAccount"}, kinds[set]...)
			want = slices.DeleteFunc(want, func(kind string) bool { return slices.Contains(without[set], kind) })
			slices.Sort(want)
			if kinds := slices.Sorted(maps.Keys(got)); !slices.Equal(kinds, want) {
				t.Errorf("the kinds are %q, want %q", kinds, want)
			}
			for _, deployment := range all[*appsv1.Deployment](rendered) {
				follow(t, rendered, deployment)
			}
		})
	}
}

// follow checks what a Deployment and its pods name, and that only a Secret from outside is not
// rendered.
func follow(t *testing.T, rendered []runtime.Object, deployment *appsv1.Deployment) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	testworld.Must(t, err)
	if !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s does not select its pods", deployment.Name)
	}
	spec := deployment.Spec.Template.Spec
	the[*corev1.ServiceAccount](t, rendered, spec.ServiceAccountName)
	container := spec.Containers[0]
	for _, from := range container.EnvFrom {
		the[*corev1.ConfigMap](t, rendered, from.ConfigMapRef.Name)
	}
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			the[*corev1.ConfigMap](t, rendered, v.ConfigMap.Name)
		}
	}
	if spec.SecurityContext == nil || !*spec.SecurityContext.RunAsNonRoot || *spec.EnableServiceLinks || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("%s does not fit the standard restricted, or has links of Services in its environment", deployment.Name)
	}
}

// TestThePodIsConfiguredAsTheProgramReadsIt holds the rendered environment and processors file to
// pkg/config.
func TestThePodIsConfiguredAsTheProgramReadsIt(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			rendered := render(t, set)
			name := all[*corev1.Service](rendered)[0].Name
			var environ []string
			for key, value := range the[*corev1.ConfigMap](t, rendered, name).Data {
				environ = append(environ, key+"="+value)
			}
			for _, e := range the[*appsv1.Deployment](t, rendered, name).Spec.Template.Spec.Containers[0].Env {
				secret := map[string]string{
					"FEEDSCALE_API_KEY": "a key of one's own",
					"COSMOS":            "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=a2V5;",
					"SERVICEBUS":        "Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=a;SharedAccessKey=a2V5",
				}[e.Name]
				if secret == "" || e.ValueFrom.SecretKeyRef == nil {
					t.Errorf("the variable %s is not of a Secret", e.Name)
				}
				environ = append(environ, e.Name+"="+secret)
			}
			c, err := config.Read(config.Input{Environ: environ, ReadFile: func(path string) ([]byte, error) {
				text, ok := the[*corev1.ConfigMap](t, rendered, name+"-processors").Data[strings.TrimPrefix(path, "/etc/feedscale/")]
				if !ok {
					return nil, os.ErrNotExist
				}
				return []byte(text), nil
			}})
			testworld.Must(t, err)
			if len(c.Processors) == 0 || c.Settings.Listen != ":7071" || c.Settings.APIKey.IsZero() {
				t.Errorf("%d processors at %s", len(c.Processors), c.Settings.Listen)
			}
		})
	}
}

func TestTheConsumerTakesItsOwnEventsAndMayScaleInEachNamespace(t *testing.T) {
	rendered := render(t, "consume")
	container := the[*appsv1.Deployment](t, rendered, "scaling-consume").Spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Args, []string{"consume", "--action", "kubernetes", "--sessions"}) || container.Env[0].Value != "servicebus:SERVICEBUS/decisions/Subscriptions/kubernetes" {
		t.Errorf("it runs %q with %+v", container.Args, container.Env[0])
	}
	var namespaces []string
	for _, binding := range all[*rbacv1.RoleBinding](rendered) {
		namespaces = append(namespaces, binding.Namespace)
		if binding.Subjects[0].Namespace != "scaling" || binding.Subjects[0].Name != "scaling-consume" {
			t.Errorf("%s binds %+v", binding.Namespace, binding.Subjects)
		}
	}
	if slices.Sort(namespaces); !slices.Equal(namespaces, []string{"audit", "shop"}) {
		t.Errorf("it may scale in %q", namespaces)
	}
}

func TestPrometheusReadsTheKeyFromItsSecret(t *testing.T) {
	rendered := render(t, "monitored")
	monitor := all[*monitoring.ServiceMonitor](rendered)[0]
	service := the[*corev1.Service](t, rendered, "feedscale")
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	testworld.Must(t, err)
	endpoint := monitor.Spec.Endpoints[0]
	if !selector.Matches(labels.Set(service.Labels)) || endpoint.Port != service.Spec.Ports[0].Name {
		t.Error("the ServiceMonitor does not find the Service")
	}
	if key := endpoint.Authorization.Credentials; the[*corev1.Secret](t, rendered, key.Name).Data[key.Key] == nil {
		t.Errorf("there is no key %s in %s", key.Key, key.Name)
	}
	if rules := all[*monitoring.PrometheusRule](rendered)[0].Spec.Groups[0].Rules; len(rules) < 10 || !strings.Contains(rules[0].Annotations["summary"], "{{ $labels.processor }}") {
		t.Errorf("%d rules", len(rules))
	}
	if dashboard := the[*corev1.ConfigMap](t, rendered, "feedscale-dashboard"); !strings.Contains(dashboard.Data["feedscale.json"], `"uid": "feedscale"`) {
		t.Error("the dashboard is empty")
	}
}

func TestTwoPodsShareATableAndOneMayBeDrained(t *testing.T) {
	rendered := render(t, "two")
	deployment, budget := all[*appsv1.Deployment](rendered)[0], all[*policyv1.PodDisruptionBudget](rendered)[0]
	if *deployment.Spec.Replicas != 2 || deployment.Spec.Strategy.Type != "" || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%d pods, %s, %v", *deployment.Spec.Replicas, deployment.Spec.Strategy.Type, budget.Spec.MaxUnavailable)
	}
	if state := the[*corev1.ConfigMap](t, rendered, "feedscale").Data["FEEDSCALE_STATE"]; state != "https://shop.table.core.windows.net/feedscale" {
		t.Errorf("the state is in %s", state)
	}
}

// TestValuesThatCannotWorkAreRefused changes one value of a set that works.
func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	type object = map[string]any
	for rule, c := range map[string]struct {
		change func(object)
		says   string
	}{
		"no processors":             {func(v object) { delete(v, "processors") }, "processors is empty"},
		"two pods on one file":      {func(v object) { v["replicaCount"] = 2 }, "needs state.table"},
		"a budget of one pod":       {func(v object) { v["podDisruptionBudget"] = object{"enabled": true} }, "needs replicaCount 2"},
		"a value that there is not": {func(v object) { v["replicas"] = 2 }, "additional properties 'replicas' not allowed"},
		"a secret among settings":   {func(v object) { v["settings"].(object)["COSMOS"] = "AccountEndpoint=https://a/;AccountKey=a2V5;" }, "/settings/COSMOS"},
		"a secret by its name":      {func(v object) { v["settings"].(object)["COSMOS__clientSecret"] = "s" }, "invalid propertyName 'COSMOS__clientSecret'"},
		"a setting of the chart":    {func(v object) { v["settings"].(object)["FEEDSCALE_LISTEN"] = ":80" }, "FEEDSCALE_LISTEN is set by the chart"},
		"a setting that is there twice": {func(v object) {
			v["secretSettings"] = object{"COSMOS__accountEndpoint": object{"name": "a", "key": "b"}}
		}, "is in settings and in secretSettings"},
		"a consumer without events": {func(v object) { v["consume"] = object{"enabled": true} }, "consume needs events of Service Bus"},
		"a Secret without its key":  {func(v object) { v["secretSettings"] = object{"COSMOS": object{"name": "cosmos"}} }, "missing property 'key'"},
		"a state of another kind":   {func(v object) { v["state"] = object{"table": "bolt:file"} }, "/state/table"},
	} {
		values := valuesOf(t, "minimal")
		c.change(values)
		if _, err := template(values); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", rule, err, c.says)
		}
	}
}

// TestAnUpgradeKeepsTheState also keeps what others name: the Service, its ports, and the Secret of
// the key.
func TestAnUpgradeKeepsTheState(t *testing.T) {
	rendered := render(t, "minimal")
	// As infra/kubernetes/feedscale.yaml had them before there was a chart. A selector and a claim
	// cannot be changed.
	deployment := the[*appsv1.Deployment](t, rendered, "feedscale")
	if got := deployment.Spec.Selector.MatchLabels; !maps.Equal(got, map[string]string{"app.kubernetes.io/name": "feedscale"}) || deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("the selector is %v, the strategy %s", got, deployment.Spec.Strategy.Type)
	}
	claim := the[*corev1.PersistentVolumeClaim](t, rendered, "feedscale")
	if claim.Spec.Resources.Requests.Storage().String() != "1Gi" || claim.Spec.StorageClassName != nil || claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("the claim is %+v", claim)
	}
	ports := map[string]int32{}
	for _, p := range the[*corev1.Service](t, rendered, "feedscale").Spec.Ports {
		ports[p.Name] = p.Port
	}
	if !maps.Equal(ports, map[string]int32{"http": 7071, "scaler": 6000}) {
		t.Errorf("the Service has %v", ports)
	}
	the[*networkingv1.NetworkPolicy](t, rendered, "feedscale")
	made := the[*corev1.Secret](t, rendered, "feedscale-key")
	if len(made.Data["key"]) != 43 || made.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("a key of %d characters is made", len(made.Data["key"]))
	}
	if again := the[*corev1.Secret](t, render(t, "minimal"), "feedscale-key"); bytes.Equal(again.Data["key"], made.Data["key"]) {
		t.Error("each installation has the same key")
	}
}

// cluster has a Secret in it.
type cluster struct{ secret *corev1.Secret }

func (c cluster) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	client := fakedynamic.NewSimpleDynamicClient(scheme.Scheme, c.secret)
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
}

func TestAnUpgradeKeepsTheKey(t *testing.T) {
	chart, err := loader.Load(chartFolder)
	testworld.Must(t, err)
	values, err := util.ToRenderValues(chart, valuesOf(t, "minimal"), common.ReleaseOptions{Name: "feedscale", Namespace: "scaling", IsUpgrade: true}, nil)
	testworld.Must(t, err)
	rendered, err := engine.RenderWithClientProvider(chart, values, cluster{&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "feedscale-key", Namespace: "scaling"},
		Data: map[string][]byte{"key": []byte("as it was")},
	}})
	testworld.Must(t, err)
	if got := the[*corev1.Secret](t, objects(t, rendered["feedscale/templates/key.yaml"]), "feedscale-key").Data["key"]; string(got) != "as it was" {
		t.Errorf("the key is now %q", got)
	}
}

// ofHelm matches Helm's own labels and annotations; a checksum is wrong after somebody edits the
// file.
var ofHelm = regexp.MustCompile(`^(helm\.sh/.*|app\.kubernetes\.io/(instance|version|managed-by)|checksum/config)$`)

// strip takes what is Helm's own from a document, and annotations that are empty then.
func strip(n *yaml.Node) {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; {
		key, value := n.Content[i], n.Content[i+1]
		strip(value)
		if ofHelm.MatchString(key.Value) || key.Value == "annotations" && len(value.Content) == 0 {
			n.Content = slices.Delete(n.Content, i, i+2)
			continue
		}
		i += 2
	}
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			strip(child)
		}
	}
}

const sampleHead = `# A sample for kubectl: feedscale in a cluster, with the HTTP API at port 7071 and KEDA's external scaler at 6000. It is rendered from
# infra/helm/feedscale, which has more to choose from: docs/kubernetes.md. Run, with the words in capital letters replaced:
# kubectl create namespace feedscale
# kubectl --namespace feedscale create secret generic feedscale-key --from-literal=key="$(openssl rand -base64 32)"
# kubectl --namespace feedscale apply --filename infra/kubernetes/feedscale.yaml
`

func TestTheSampleForKubectlIsWhatTheChartRenders(t *testing.T) {
	manifest, err := template(valuesOf(t, "kubernetes"))
	testworld.Must(t, err)
	want := bytes.NewBufferString(sampleHead)
	encoder := yaml.NewEncoder(want)
	encoder.SetIndent(2)
	for decoder := yaml.NewDecoder(strings.NewReader(regexp.MustCompile(`(?m)^# Source: .*\n`).ReplaceAllString(manifest, ""))); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		testworld.Must(t, err)
		strip(&document)
		testworld.Must(t, encoder.Encode(&document))
	}
	testworld.Must(t, encoder.Close())
	if *update {
		testworld.Must(t, os.WriteFile(sampleFile, want.Bytes(), 0o644))
	}
	got, err := os.ReadFile(sampleFile)
	testworld.Must(t, err)
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("infra/kubernetes/feedscale.yaml is another one: pkg/emulator/interop/run-helm.sh -update writes it anew")
	}
}
