package importer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// keda makes entries of KEDA's objects.
type keda struct {
	*output
	objects         []*yamltree.Node             // ScaledObjects
	authentications map[[3]string]authentication // by kind, namespace (or "") and name
}

// object keeps the objects of KEDA in a Kubernetes object or list. It reports whether there are
// any.
func (k *keda) object(v *yamltree.Node) (used bool) {
	switch kind := v.Get("kind").Text(); kind {
	case "ScaledObject":
		k.objects = append(k.objects, v)
	case "TriggerAuthentication", "ClusterTriggerAuthentication":
		k.authentication(kind, v)
	case "ScaledJob":
		k.remark(v, "a ScaledJob starts a job for each piece of work, but a change feed processor keeps running: run it in a Deployment with a ScaledObject")
	default:
		if strings.HasSuffix(kind, "List") {
			for _, item := range v.Get("items").Items {
				used = k.object(item) || used
			}
		}
		return used
	}
	return true
}

// scaledObject makes entries of a ScaledObject
// (https://keda.sh/docs/latest/reference/scaledobject-spec/).
func (k *keda) scaledObject(v *yamltree.Node) {
	spec, name, namespace := v.Get("spec"), v.Get("metadata", "name").Text(), v.Get("metadata", "namespace").Text()
	var triggers []trigger
	var windows []*yamltree.Node
	for _, t := range spec.Get("triggers").Items {
		kind, m := t.Get("type").Text(), t.Get("metadata")
		switch {
		case kind == "azure-cosmosdb", isExternal(kind) && m.Get("databaseId").Present() && m.Get("containerId").Present():
			triggers = append(triggers, trigger{t, isExternal(kind), m, k.referred(t, namespace)})
		case kind == "cron":
			windows = append(windows, t)
		case isExternal(kind) && m.Get("processor").Present():
			k.remark(t, "asks feedscale for processor %q already", m.Get("processor").Text())
		default:
			k.remark(t, "a trigger of type %q does not measure Cosmos DB; keep it in a ScaledObject, and add a trigger there that asks feedscale (https://github.com/feedscale/feedscale/blob/main/docs/act.md)", kind)
		}
	}
	if len(triggers) == 0 {
		k.remark(v, "this ScaledObject has no trigger for Cosmos DB that can be carried over; leave it with KEDA")
		return
	}
	shared, own := k.shared(v, triggers, windows), scalars(spec, "minReplicaCount", "maxReplicaCount")
	if target := scaleTarget(spec.Get("scaleTargetRef"), namespace); target != nil {
		own = append(own, field{"target", target, spec.Get("scaleTargetRef")})
	} else {
		k.remark(spec.Get("scaleTargetRef"), "fill in by hand: write target: {deployment: NAME, namespace: NAMESPACE}")
	}
	name = k.freeName(name, name+"-"+namespace)
	if len(triggers) == 1 {
		e := k.processor(triggers[0], "")
		e.name, e.fields = name, slices.Concat(e.fields, own, shared)
		k.processors = append(k.processors, e)
		return
	}
	k.groups = append(k.groups, &entry{at: v, name: name, fields: own})
	for _, t := range triggers {
		e := k.processor(t, name)
		e.name = k.freeName(name + "-" + cmp.Or(t.Get("name").Text(), t.metadata.Get("processorName").Text(), t.metadata.Get("containerId").Text()))
		e.fields = append(e.fields, shared...)
		k.processors = append(k.processors, e)
	}
}

// scaleTarget returns the target labels of what a ScaledObject scales (docs/consume.md), nil if it
// has no name.
func scaleTarget(ref *yamltree.Node, namespace string) map[string]string {
	name, version := ref.Get("name").Text(), cmp.Or(ref.Get("apiVersion").Text(), "apps/v1")
	kind := cmp.Or(ref.Get("kind").Text(), "Deployment")
	target := map[string]string{"apiVersion": version, "kind": kind, "name": name}
	if strings.HasPrefix(version, "apps/") && (kind == "Deployment" || kind == "StatefulSet") {
		target = map[string]string{strings.ToLower(kind): name}
	}
	if namespace != "" {
		target["namespace"] = namespace
	}
	if name == "" {
		return nil
	}
	return target
}

// scalars copies fields.
func scalars(v *yamltree.Node, names ...string) []field {
	var all []field
	for _, name := range names {
		if f := v.Get(name); f.Present() {
			all = append(all, field{name, plain(f.Text()), f})
		}
	}
	return all
}

// window is an item of schedules.
type window struct {
	Timezone, Start, End string
	DesiredReplicas      *yaml.Node `yaml:"desiredReplicas"`
}

// shared is the fields of a ScaledObject for each of its triggers.
func (k *keda) shared(v *yamltree.Node, triggers []trigger, windows []*yamltree.Node) []field {
	spec := v.Get("spec")
	all := append(k.interval(spec, triggers), scalars(spec, "cooldownPeriod")...)
	if fallback, ok := spec.Get("fallback").Value().(map[string]any); ok {
		fallback["behavior"] = cmp.Or(fallback["behavior"], any("static")) // KEDA's default
		all = append(all, field{"fallback", fallback, spec.Get("fallback")})
	}
	hpa := spec.Get("advanced", "horizontalPodAutoscalerConfig")
	k.rest(spec.Get("advanced").Fields, "nothing is written for it", "horizontalPodAutoscalerConfig")
	k.rest(hpa.Fields, "there is no HorizontalPodAutoscaler; nothing is written for it", "behavior")
	if behavior, ok := hpa.Get("behavior").Value().(map[string]any); ok {
		for _, rules := range behavior {
			rules, _ := rules.(map[string]any)
			if quantity, ok := rules["tolerance"].(string); ok { // of Kubernetes: 50m is 50e-3
				rules["tolerance"] = plain(strings.Replace(quantity, "m", "e-3", 1))
			}
		}
		all = append(all, field{"behavior", behavior, hpa.Get("behavior")})
	}
	var schedules []window
	for _, w := range windows {
		text := func(name string) string { return strings.TrimSpace(w.Get("metadata", name).Text()) }
		schedules = append(schedules, window{text("timezone"), text("start"), text("end"), plain(text("desiredReplicas"))})
	}
	if schedules != nil {
		all = append(all, field{"schedules", schedules, windows[0]})
	}
	k.rest(spec.Fields, "is no field of a ScaledObject, and nothing is written for it",
		"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod", "fallback", "advanced", "triggers")
	return append(all, k.annotations(v.Get("metadata", "annotations"))...)
}

// interval carries over pollingInterval as idleSchedule. KEDA uses it only from and to zero
// replicas; else the HorizontalPodAutoscaler asks every 15 s, unless the trigger caches the metric
// (IsPollingIntervalRelevant in https://github.com/kedacore/keda,
// apis/keda/v1alpha1/scaledobject_types.go).
func (k *keda) interval(spec *yamltree.Node, triggers []trigger) []field {
	v, name := spec.Get("pollingInterval"), "idleSchedule"
	if slices.ContainsFunc(triggers, func(t trigger) bool { return isTrue(t.Get("useCachedMetrics")) }) {
		name = "schedule"
	}
	sleeps := cmp.Or(spec.Get("minReplicaCount").Text(), "0") == "0" || spec.Get("idleReplicaCount").Present()
	const hpaInterval = 15 // seconds, as of feedscale by default
	seconds, err := strconv.Atoi(v.Text())
	schedule := every(seconds)
	switch {
	case err != nil, seconds < 1, seconds == hpaInterval:
		return nil
	case schedule == "", seconds < hpaInterval, name == "idleSchedule" && !sleeps:
		k.remark(v, "%s", instead("pollingInterval"))
		return nil
	}
	return []field{{name, schedule, v}}
}

// annotations carries over a pause
// (https://keda.sh/docs/latest/concepts/scaling-deployments/#pause-autoscaling).
func (k *keda) annotations(v *yamltree.Node) (paused []field) {
	for _, a := range v.Fields {
		switch name, _ := strings.CutPrefix(a.Name, "autoscaling.keda.sh/"); {
		case strings.EqualFold(a.Text(), "false"):
		case name == "paused", name == "paused-replicas":
			k.remark(a, "is carried over as paused: true: it is measured and shown, and nothing is published; set a number of replicas by hand")
			paused = []field{{"paused", true, a}}
		case name == "paused-scale-in", name == "paused-scale-out", name == "force-activation":
			k.remark(a, "is no switch here; write selectPolicy: Disabled in behavior.scaleDown or behavior.scaleUp, or minReplicaCount: 1 to keep it active")
		}
	}
	return paused
}
