package imports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// leases identifies the leases that an entry reads, of which only one may.
type leases struct{ connection, leaseConnection, database, container, leaseDatabase, leaseContainer, processor string }

func leasesOf(e *entry) leases {
	or := func(field, fallback string) string {
		if text := e.get(field); text != "" {
			return text
		}
		return fallback
	}
	return leases{
		e.get("connection"), or("leaseConnection", e.get("connection")), e.get("databaseId"), e.get("containerId"),
		or("leaseDatabaseId", e.get("databaseId")), or("leaseContainerId", "leases"), e.get("processorName"),
	}
}

// scaledObject makes entries of a ScaledObject
// (https://keda.sh/docs/latest/reference/scaledobject-spec/).
func (c *converter) scaledObject(v value) {
	spec, name, namespace := v.get("spec"), v.get("metadata", "name").text(), v.get("metadata", "namespace").text()
	target, workload := scaleTarget(spec.get("scaleTargetRef"), namespace)
	var triggers []trigger
	var windows []value
	for _, t := range spec.get("triggers").items() {
		switch kind := t.get("type").text(); {
		case kind == "azure-cosmosdb":
			triggers = append(triggers, c.newTrigger(t, false, namespace, workload))
		case isExternal(kind) && t.get("metadata", "databaseId").present() && t.get("metadata", "containerId").present():
			triggers = append(triggers, c.newTrigger(t, true, namespace, workload))
		case kind == "cron":
			windows = append(windows, t)
		case isExternal(kind) && t.get("metadata", "processor").present():
			c.remark(t, "asks feedscale for processor %q already", t.get("metadata", "processor").text())
		default:
			c.remark(t, "a trigger of type %q measures something else than Cosmos DB; keep it in a ScaledObject, and add a trigger there that asks feedscale (docs/act.md)", kind)
		}
	}
	if len(triggers) == 0 {
		c.remark(v, "this ScaledObject has no trigger for Cosmos DB that can be carried over; KEDA goes on with it")
		return
	}
	shared := c.shared(v, triggers, windows)
	bounds, targets := c.bounds(spec), []field(nil)
	if target != nil {
		targets = []field{{"target", target, spec.get("scaleTargetRef")}}
	} else {
		c.remark(spec.get("scaleTargetRef"), "has no name; write target: {deployment: NAME, namespace: NAMESPACE}")
	}
	if len(triggers) == 1 {
		e := c.processor(triggers[0])
		if e == nil {
			return
		}
		e.name = c.freeName(name, name+"-"+namespace)
		e.fields = slices.Concat(e.fields, bounds, shared, targets)
		c.add(e)
		return
	}
	group := &entry{at: v, name: c.freeName(name, name+"-"+namespace), fields: c.freeTarget(slices.Concat(bounds, targets))}
	before := len(c.processors)
	for _, t := range triggers {
		e := c.processor(t)
		if e == nil {
			continue
		}
		var candidates []string
		for _, own := range []string{t.get("name").text(), t.metadata.get("processorName").text(), t.metadata.get("containerId").text()} {
			if own != "" {
				candidates = append(candidates, group.name+"-"+own)
			}
		}
		e.name = c.freeName(append(candidates, group.name)...)
		e.fields = slices.Concat([]field{{"group", text(group.name), v}}, e.fields, shared)
		c.add(e)
	}
	if len(c.processors) == before {
		delete(c.names, group.name)
		return
	}
	if c.keepAllowed(group, aloneInGroup) {
		c.groups = append(c.groups, group)
		c.takeTarget(group)
	}
}

func isExternal(kind string) bool { return kind == "external" || kind == "external-push" }

// add adds a processor, unless it cannot be read or is there already. It reports whether it did.
func (c *converter) add(e *entry) bool {
	e.fields = c.freeTarget(e.fields)
	if !c.keepAllowed(e, alone) {
		delete(c.names, e.name)
		return false
	}
	if first, twice := c.leases[leasesOf(e)]; twice {
		c.remark(e.at, "reads the same leases as %s, of %s:%d; one entry is enough", first.name, first.at.file, first.at.line)
		delete(c.names, e.name)
		return false
	}
	c.leases[leasesOf(e)] = e
	c.takeTarget(e)
	c.processors = append(c.processors, e)
	return true
}

// freeTarget leaves out a target that another entry has.
func (c *converter) freeTarget(fields []field) []field {
	return slices.DeleteFunc(fields, func(f field) bool {
		if f.name != "target" {
			return false
		}
		first, taken := c.targets[targetID(f.node)]
		if taken {
			c.remark(f.at, "is the target of %s already; it is left out here: let one group hold both, or scale it by one of them", first.name)
		}
		return taken
	})
}

func (c *converter) takeTarget(e *entry) {
	for _, f := range e.fields {
		if f.name == "target" {
			c.targets[targetID(f.node)] = e
		}
	}
}

func targetID(target *yaml.Node) string {
	var b strings.Builder
	for _, n := range target.Content {
		b.WriteString(n.Value + "\x00")
	}
	return b.String()
}

// scaleTarget returns the labels for what a ScaledObject scales (docs/act.md, kubernetes), nil where
// it has no name, and what to call it.
func scaleTarget(ref value, namespace string) (target *yaml.Node, workload string) {
	name, kind, version := ref.get("name").text(), ref.get("kind").text(), ref.get("apiVersion").text()
	if name == "" {
		name = ref.get("deploymentName").text() // KEDA 1
	}
	if name == "" {
		return nil, "the workload"
	}
	if kind == "" {
		kind = "Deployment"
	}
	apps := version == "" || strings.HasPrefix(version, "apps/")
	switch {
	case apps && kind == "Deployment":
		target = object("deployment", text(name))
	case apps && kind == "StatefulSet":
		target = object("statefulset", text(name))
	default:
		if version == "" {
			version = "apps/v1"
		}
		target = object("apiVersion", text(version), "kind", text(kind), "name", text(name))
	}
	workload = kind + " " + name
	if namespace != "" {
		target.Content = append(target.Content, text("namespace"), text(namespace))
		workload = kind + " " + namespace + "/" + name
	}
	if container := ref.get("envSourceContainerName").text(); container != "" {
		workload += ", container " + container
	}
	return onOneLine(target), workload
}

// bounds are the replica counts of a ScaledObject.
func (c *converter) bounds(spec value) []field {
	var all []field
	for _, name := range []string{"minReplicaCount", "maxReplicaCount"} {
		if v := spec.get(name); v.present() {
			all = append(all, field{name, plain(v.text()), v})
		}
	}
	return all
}

// shared is what a ScaledObject says for each of its triggers. It says what has no equivalent.
func (c *converter) shared(object value, triggers []trigger, windows []value) []field {
	spec := object.get("spec")
	all := c.interval(spec, triggers)
	if v := spec.get("cooldownPeriod"); v.present() {
		all = append(all, field{"cooldownPeriod", plain(v.text()), v})
	}
	all = append(all, c.fallback(spec.get("fallback"))...)
	all = append(all, c.advanced(spec.get("advanced"))...)
	if len(windows) > 0 {
		schedules := list()
		for _, w := range windows {
			if mistakes := refused(marshal(alone(withSchedule(floor(w))))); len(mistakes) > 0 {
				_, field, _ := strings.Cut(mistakes[0].Field, "schedules[0]")
				at := w.get("metadata", strings.TrimPrefix(field, "."))
				c.remark(at, "%s; the window is left out", mistakes[0].Text)
				continue
			}
			schedules.Content = append(schedules.Content, floor(w))
		}
		if len(schedules.Content) > 0 {
			all = append(all, field{"schedules", schedules, windows[0]})
		}
	}
	for _, m := range spec.members() {
		switch m.name {
		case "scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod", "fallback", "advanced", "triggers":
		default:
			if known, ok := equivalent(m.name); ok {
				c.remark(m.value, "%s", known)
			} else {
				c.remark(m.value, "is no field of a ScaledObject, and nothing is written for it")
			}
		}
	}
	return append(all, c.annotations(object.get("metadata", "annotations"))...)
}

// withSchedule is a processor with one entry of schedules.
func withSchedule(window *yaml.Node) *yaml.Node {
	return object("name", text("a"), "connection", text("COSMOS"), "databaseId", text("shop"), "containerId", text("orders"), "schedules", list(window))
}

// hpaInterval is how often, in seconds, the controller of the HorizontalPodAutoscaler asks KEDA by
// default, and how often feedscale polls by default.
const hpaInterval = 15

// interval carries over pollingInterval. KEDA's own loop decides at its pace on the way from and to
// zero alone; in between the HorizontalPodAutoscaler asks for the metric, every 15 s, unless the
// trigger caches it (IsPollingIntervalRelevant in
// https://github.com/kedacore/keda, apis/keda/v1alpha1/scaledobject_types.go). So it is the pace of a
// processor that has nothing to do.
func (c *converter) interval(spec value, triggers []trigger) []field {
	v := spec.get("pollingInterval")
	seconds, ok := v.integer()
	if !v.present() || !ok || seconds < 1 {
		return nil
	}
	name := "idleSchedule"
	for _, t := range triggers {
		if t.get("useCachedMetrics").isTrue() {
			name = "schedule"
		}
	}
	sleeps := spec.get("minReplicaCount").text() == "" || spec.get("minReplicaCount").text() == "0" || spec.get("idleReplicaCount").present()
	schedule, got := every(seconds)
	switch {
	case name == "idleSchedule" && !sleeps:
		c.remark(v, "has no effect in KEDA where minReplicaCount is above 0, and none here: the HorizontalPodAutoscaler asks every %d s, and so does FEEDSCALE_TIMER_SCHEDULE by default", hpaInterval)
		return nil
	case seconds == hpaInterval:
		return nil
	case seconds < hpaInterval:
		c.remark(v, "is more often than FEEDSCALE_TIMER_SCHEDULE is by default, every %d s; set that to %q to poll all processors so often", hpaInterval, schedule)
		return nil
	case got != seconds:
		c.remark(v, "there is no schedule of %d s; it is carried over as %s: %q, every %d s", seconds, name, schedule, got)
	}
	return []field{{name, text(schedule), v}}
}

// fallback carries over what is done where nothing can be measured: KEDA's default behavior is
// static.
func (c *converter) fallback(v value) []field {
	if !v.isObject() {
		return nil
	}
	behavior, made := v.get("behavior"), object()
	if behavior.text() == "scalingModifiers" {
		c.remark(behavior, "%s", instead("scalingModifiers"))
		return nil
	}
	if n := v.get("failureThreshold"); n.present() {
		made.Content = append(made.Content, text("failureThreshold"), plain(n.text()))
	}
	how := "static"
	if behavior.present() {
		how = behavior.text()
	}
	made.Content = append(made.Content, text("behavior"), text(how))
	if n := v.get("replicas"); n.present() && how != "currentReplicas" {
		made.Content = append(made.Content, text("replicas"), plain(n.text()))
	}
	return []field{{"fallback", onOneLine(made), v}}
}

// advanced carries over the behavior of the HorizontalPodAutoscaler.
func (c *converter) advanced(v value) []field {
	hpa := v.get("horizontalPodAutoscalerConfig")
	for _, m := range v.members() {
		if m.name != "horizontalPodAutoscalerConfig" && !(m.name == "restoreToOriginalReplicaCount" && !m.value.isTrue()) {
			if known, ok := equivalent(m.name); ok {
				c.remark(m.value, "%s", known)
			} else {
				c.remark(m.value, "nothing is written for it")
			}
		}
	}
	if name := hpa.get("name"); name.present() {
		c.remark(name, "there is no HorizontalPodAutoscaler to name; nothing is written for it")
	}
	behavior := hpa.get("behavior")
	made := copied(behavior)
	if made == nil || !behavior.isObject() {
		return nil
	}
	for i := 1; i < len(made.Content); i += 2 {
		direction := made.Content[i]
		for j := 0; j+1 < len(direction.Content); j += 2 {
			switch value := direction.Content[j+1]; direction.Content[j].Value {
			case "tolerance": // a Kubernetes quantity: 50m is 0.05
				value.Tag = ""
				if text, ok := strings.CutSuffix(value.Value, "m"); ok {
					if thousandths, err := strconv.ParseFloat(text, 64); err == nil {
						value.Value = strconv.FormatFloat(thousandths/1000, 'f', -1, 64)
					}
				}
			case "policies":
				for _, policy := range value.Content {
					onOneLine(policy)
				}
			}
		}
		if len(direction.Content) == 2 {
			onOneLine(direction)
		}
	}
	return []field{{"behavior", made, behavior}}
}

// annotations carries over a pause
// (https://keda.sh/docs/latest/concepts/scaling-deployments/#pause-autoscaling).
func (c *converter) annotations(v value) []field {
	const prefix = "autoscaling.keda.sh/"
	var all []field
	for _, m := range v.members() {
		name, ours := strings.CutPrefix(m.name, prefix)
		if !ours {
			continue
		}
		on := !strings.EqualFold(m.value.text(), "false")
		switch {
		case name == "paused" && on:
			all = append(all, field{"paused", plain("true"), m.value})
			c.remark(m.value, "is carried over as paused: true: it is measured and shown, and nothing is published")
		case name == "paused-replicas":
			all = append(all, field{"paused", plain("true"), m.value})
			c.remark(m.value, "is carried over as paused: true, which sets no count: set the replicas to %s by hand", shownCount(m.value))
		case name == "paused-scale-in" && on:
			c.remark(m.value, "is no pause here; write behavior: {scaleDown: {selectPolicy: Disabled}}")
		case name == "paused-scale-out" && on:
			c.remark(m.value, "is no pause here; write behavior: {scaleUp: {selectPolicy: Disabled}}")
		case name == "force-activation" && on:
			c.remark(m.value, "is no switch here; write minReplicaCount: 1 for as long as it is to be active")
		}
	}
	if len(all) > 1 {
		all = all[:1]
	}
	return all
}

func shownCount(v value) string {
	if n, ok := v.integer(); ok {
		return fmt.Sprint(n)
	}
	return "the same count"
}
