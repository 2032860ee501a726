package check_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// kubernetesObjects decodes a manifest as an API server with strict validation does: unknown and
// duplicate fields are errors. Kinds that are not Kubernetes's own, such as KEDA's, are left out.
func kubernetesObjects(t *testing.T, elements ...string) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	decoder := yaml.NewDecoder(strings.NewReader(read(t, append([]string{"infra"}, elements...)...)))
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
		if bytes.Contains(text, []byte("apiVersion: keda.sh/")) {
			continue
		}
		o, _, err := strict.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		found = append(found, o)
	}
}

// the returns the only object of a kind and a name; "" matches any name.
func the[T runtime.Object](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok && (name == "" || o.(metav1.Object).GetName() == name) {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects %T with the name %q, want 1", len(found), *new(T), name)
	}
	return found[0]
}

func TestTheStrictReaderRefusesWhatAKindHasNot(t *testing.T) {
	t.Parallel()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for rule, text := range map[string]string{
		"an unknown field":            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {port: 1}}",
		"a field that is there twice": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nmetadata: {name: b}\n",
		"an unknown kind":             "{apiVersion: v1, kind: Services}",
		"a value of another type":     "{apiVersion: v1, kind: ConfigMap, data: {A: 1}}",
	} {
		if _, _, err := strict.Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s is taken", rule)
		}
	}
}

func TestTheDeploymentOfRunHoldsTogether(t *testing.T) {
	t.Parallel()
	objects := kubernetesObjects(t, "kubernetes", "feedscale.yaml")
	for _, o := range objects {
		if name := o.(metav1.Object).GetName(); len(validation.IsDNS1123Label(name)) > 0 || o.(metav1.Object).GetNamespace() != "" {
			t.Errorf("%T %q: its name has to be one, and its namespace is kubectl's to say", o, name)
		}
	}
	deployment := the[*appsv1.Deployment](t, objects, "")
	spec := deployment.Spec.Template.Spec
	container := spec.Containers[0]
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	testworld.Must(t, err)
	pod := labels.Set(deployment.Spec.Template.Labels)
	service, policy := the[*corev1.Service](t, objects, ""), the[*networkingv1.NetworkPolicy](t, objects, "")
	guarded, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	testworld.Must(t, err)
	for what, matches := range map[string]bool{
		"the Deployment": selector.Matches(pod), "the Service": labels.SelectorFromSet(service.Spec.Selector).Matches(pod), "the NetworkPolicy": guarded.Matches(pod),
	} {
		if !matches {
			t.Errorf("%s does not select the pod", what)
		}
	}
	if account := the[*corev1.ServiceAccount](t, objects, ""); spec.ServiceAccountName != account.Name || *account.AutomountServiceAccountToken || *spec.AutomountServiceAccountToken {
		t.Errorf("the pod runs as %q, want %q without a token", spec.ServiceAccountName, account.Name)
	}
	if pod["azure.workload.identity/use"] != "true" {
		t.Error("the pod has no workload identity")
	}
	if *deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two pods could have the state file open at once")
	}
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		t.Error("the Service would put FEEDSCALE_PORT into the environment, which is refused as a mistake")
	}

	ports := make(map[string]int32)
	for _, p := range container.Ports {
		if len(validation.IsValidPortName(p.Name)) > 0 {
			t.Errorf("a port cannot be named %q", p.Name)
		}
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range service.Spec.Ports {
		if p.TargetPort.Type != intstr.String || ports[p.TargetPort.StrVal] != p.Port {
			t.Errorf("the Service has the port %s %d, the container %v", p.Name, p.Port, ports)
		}
	}
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			if ports[p.Port.StrVal] == 0 {
				t.Errorf("the NetworkPolicy names the port %s", p.Port)
			}
		}
	}
	for what, probe := range map[string]*corev1.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != "/healthz" || ports[probe.HTTPGet.Port.StrVal] != 7072 {
			t.Errorf("the %s probe is %+v, want one that no flood of the other ports silences", what, probe)
		}
	}
}

func TestThePodFitsTheRestrictedPodSecurityStandard(t *testing.T) {
	t.Parallel()
	spec := the[*appsv1.Deployment](t, kubernetesObjects(t, "kubernetes", "feedscale.yaml"), "").Spec.Template.Spec
	// https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
	pod, mounts := spec.SecurityContext, make(map[string]bool)
	if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 ||
		pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || len(pod.Sysctls) > 0 {
		t.Errorf("the pod's securityContext is %+v", pod)
	}
	if spec.HostNetwork || spec.HostPID || spec.HostIPC {
		t.Error("the pod shares namespaces of its node")
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Privileged != nil && *s.Privileged ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: the securityContext is %+v", c.Name, s)
		}
		// stricter than the standard
		if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s writes to its image", c.Name)
		}
		for _, m := range c.VolumeMounts {
			mounts[m.Name] = true
		}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				t.Errorf("%s takes the port %d of its node", c.Name, p.HostPort)
			}
		}
	}
	for _, v := range spec.Volumes {
		if v.ConfigMap == nil && v.PersistentVolumeClaim == nil || !mounts[v.Name] {
			t.Errorf("the volume %s is of a kind that is not allowed, or not mounted", v.Name)
		}
	}
	if pod.FSGroup == nil {
		t.Error("who is not root cannot write to the volume of the state without fsGroup")
	}
}

// TestTheDeploymentOfRunIsConfiguredAsTheProgramReadsIt resolves the environment of the container
// and the files that it mounts.
func TestTheDeploymentOfRunIsConfiguredAsTheProgramReadsIt(t *testing.T) {
	t.Parallel()
	objects := kubernetesObjects(t, "kubernetes", "feedscale.yaml")
	spec := the[*appsv1.Deployment](t, objects, "").Spec.Template.Spec
	container := spec.Containers[0]
	environ := make(map[string]string)
	for _, from := range container.EnvFrom {
		for name, value := range the[*corev1.ConfigMap](t, objects, from.ConfigMapRef.Name).Data {
			environ[name] = value
		}
	}
	for _, e := range container.Env {
		// The comment at the top of the file has the command that makes the secret.
		if ref := e.ValueFrom.SecretKeyRef; e.Name != "FEEDSCALE_API_KEY" || ref.Name != "feedscale-key" || ref.Key != "key" {
			t.Errorf("%s is of the Secret %s, key %s", e.Name, ref.Name, ref.Key)
		}
		environ[e.Name] = "a key of one's own"
	}
	if listen := environ["FEEDSCALE_SCALER_LISTEN"]; listen != ":6000" {
		t.Errorf("the external scaler listens at %q, the port scaler is 6000", listen)
	}
	var list []string
	for name, value := range environ {
		if len(validation.IsEnvVarName(name)) > 0 {
			t.Errorf("a container cannot have the variable %s", name)
		}
		list = append(list, name+"="+value)
	}
	// mounted returns the volume at a path of the container, and the rest of the path.
	mounted := func(path string) (corev1.Volume, string) {
		for _, m := range container.VolumeMounts {
			if rest, ok := strings.CutPrefix(path, m.MountPath+"/"); ok {
				i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
				return spec.Volumes[i], rest
			}
		}
		t.Fatalf("%s is in no volume", path)
		return corev1.Volume{}, ""
	}
	c, err := config.Read(config.Input{Environ: list, ReadFile: func(path string) ([]byte, error) {
		volume, file := mounted(path)
		text, ok := the[*corev1.ConfigMap](t, objects, volume.ConfigMap.Name).Data[file]
		if !ok {
			return nil, os.ErrNotExist
		}
		return []byte(text), nil
	}})
	testworld.Must(t, err)
	if state, _ := mounted(c.Settings.State.BoltPath); state.PersistentVolumeClaim == nil || state.PersistentVolumeClaim.ClaimName != the[*corev1.PersistentVolumeClaim](t, objects, "").Name {
		t.Errorf("the state is in %+v, want the claim", state)
	}
	if c.Settings.Listen != ":7071" || c.Settings.Health != ":7072" || c.Settings.APIKey.IsZero() || c.Settings.Events.Queue != queue(t) {
		t.Errorf("it listens at %s, with a key %v, and publishes to %s", c.Settings.Listen, !c.Settings.APIKey.IsZero(), c.Settings.Events.Queue)
	}
	_, processor := sample(t)
	if got := c.Processors[0]; got.Name != processor.Name || *got.Policy.MaxReplicas != *processor.Policy.MaxReplicas || got.Target["deployment"] != processor.Target["deployment"] {
		t.Errorf("the processor is %+v, want the one of infra/processors.yaml", got)
	}
}

func TestTheConsumerSampleMayDoWhatTheActionAsksFor(t *testing.T) {
	t.Parallel()
	objects := kubernetesObjects(t, "keda", "consumer.yaml")
	account, role, binding := the[*corev1.ServiceAccount](t, objects, ""), the[*rbacv1.Role](t, objects, ""), the[*rbacv1.RoleBinding](t, objects, "")
	if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "Role" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account.Name {
		t.Errorf("%+v does not bind %s to %s", binding, account.Name, role.Name)
	}
	for _, needs := range []struct{ group, resource, verb string }{
		{"apps", "deployments/scale", "get"}, {"apps", "deployments/scale", "update"}, {"apps", "statefulsets/scale", "get"}, {"apps", "statefulsets/scale", "update"},
		{"autoscaling", "horizontalpodautoscalers", "list"}, {"keda.sh", "scaledobjects", "list"},
	} {
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, needs.group) && slices.Contains(r.Resources, needs.resource) && slices.Contains(r.Verbs, needs.verb)
		}) {
			t.Errorf("the Role does not allow to %s %s of %s", needs.verb, needs.resource, needs.group)
		}
	}
	if n := len(role.Rules); n != 3 {
		t.Errorf("the Role has %d rules, want the 3 that are needed", n)
	}
}
