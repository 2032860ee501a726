package importer

import (
	"cmp"
	"slices"
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

// trigger is a trigger for Cosmos DB: KEDA's own
// (https://github.com/kedacore/keda, pkg/scalers/azure_cosmosdb_scaler.go), or the community's
// external scaler (https://github.com/kedacore/external-scaler-azure-cosmos-db,
// src/Scaler/Services/ScalerMetadata.cs).
type trigger struct {
	*yamltree.Node
	external       bool
	metadata       *yamltree.Node
	authentication authentication
}

// object keeps the objects of KEDA in a Kubernetes object or list.
func (k *keda) object(v *yamltree.Node) {
	switch kind := v.Get("kind").Text(); kind {
	case "ScaledObject":
		k.objects = append(k.objects, v)
	case "TriggerAuthentication", "ClusterTriggerAuthentication":
		k.authentication(kind, v)
	case "ScaledJob":
		k.remark(v, "a ScaledJob starts a job for each piece of work, but a change feed processor keeps running: run it in a Deployment with a ScaledObject")
	default: // of a List
		for _, item := range v.Get("items").Items {
			k.object(item)
		}
	}
}

// scaledObject makes entries of a ScaledObject
// (https://keda.sh/docs/latest/reference/scaledobject-spec/): several triggers are a group.
func (k *keda) scaledObject(v *yamltree.Node) {
	spec, name, namespace := v.Get("spec"), v.Get("metadata", "name").Text(), v.Get("metadata", "namespace").Text()
	var triggers []trigger
	var windows []window
	for _, t := range spec.Get("triggers").Items {
		kind, m := t.Get("type").Text(), t.Get("metadata")
		external := kind == "external" || kind == "external-push"
		switch {
		case kind == "azure-cosmosdb", external && m.Get("databaseId").Present() && m.Get("containerId").Present():
			triggers = append(triggers, trigger{t, external, m, k.referred(t, namespace)})
		case kind == "cron":
			windows = append(windows, window{m.Get("timezone").Text(), m.Get("start").Text(), m.Get("end").Text(), number(m.Get("desiredReplicas"))})
		case external && m.Get("processor").Present():
			k.remark(t, "asks feedscale for processor %q already", m.Get("processor").Text())
		default:
			k.remark(t, "a trigger of type %q does not measure Cosmos DB; keep it in a ScaledObject, and add a trigger there that asks feedscale (https://github.com/feedscale/feedscale/blob/main/docs/act.md)", kind)
		}
	}
	if len(triggers) == 0 {
		k.remark(v, "this ScaledObject has no trigger for Cosmos DB that can be carried over; leave it with KEDA")
		return
	}
	scaled := &entry{
		Name:        k.freeName(name, name+"-"+namespace),
		MinReplicas: number(spec.Get("minReplicaCount")), MaxReplicas: number(spec.Get("maxReplicaCount")),
		Target: k.target(spec.Get("scaleTargetRef"), namespace),
	}
	group := ""
	if len(triggers) > 1 {
		group = scaled.Name
		k.groups = append(k.groups, scaled)
	}
	for _, t := range triggers {
		e := scaled
		if group != "" {
			e = &entry{Group: group, Name: k.freeName(name + "-" + cmp.Or(t.Get("name").Text(), t.metadata.Get("processorName").Text(), t.metadata.Get("containerId").Text()))}
		}
		k.processor(e, t)
		k.shared(e, v)
		e.Schedules = windows
		k.processors = append(k.processors, e)
	}
}

// target returns the target labels of what a ScaledObject scales (docs/consume.md).
func (k *keda) target(ref *yamltree.Node, namespace string) map[string]string {
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
		k.remark(ref, "fill in by hand: %s", instead("scaleTargetRef"))
		return nil
	}
	return target
}

// window is an item of schedules.
type window struct {
	Timezone, Start, End string
	DesiredReplicas      *yaml.Node `yaml:"desiredReplicas"`
}

// shared sets the fields of a ScaledObject for each of its triggers.
func (k *keda) shared(e *entry, v *yamltree.Node) {
	spec := v.Get("spec")
	hpa := spec.Get("advanced", "horizontalPodAutoscalerConfig")
	e.Cooldown = number(spec.Get("cooldownPeriod"))
	if fallback, ok := spec.Get("fallback").Value().(map[string]any); ok {
		fallback["behavior"] = cmp.Or(fallback["behavior"], any("static")) // KEDA's default
		e.Fallback = fallback
	}
	e.Behavior = hpa.Get("behavior").Value()
	k.rest(spec.Get("advanced").Fields, "nothing is written for it", "horizontalPodAutoscalerConfig")
	k.rest(hpa.Fields, "there is no HorizontalPodAutoscaler; nothing is written for it", "behavior")
	k.rest(spec.Fields, "is no field of a ScaledObject, and nothing is written for it",
		"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "cooldownPeriod", "fallback", "advanced", "triggers")
	// https://keda.sh/docs/latest/concepts/scaling-deployments/#pause-autoscaling
	for _, a := range v.Get("metadata", "annotations").Fields {
		paused := a.Name == "autoscaling.keda.sh/paused" || a.Name == "autoscaling.keda.sh/paused-replicas"
		if paused && !strings.EqualFold(a.Text(), "false") {
			e.Paused = true
			k.remark(a, "is carried over as paused: true: it is measured and shown, and nothing is published; set a number of replicas by hand")
		}
	}
}

// processor sets the fields of a trigger.
func (k *keda) processor(e *entry, t trigger) {
	m := t.metadata
	k.rest(m.Fields, "KEDA's scaler for Cosmos DB does not read it, or it is for the way to that; nothing is written for it", slices.Concat(connectionFields,
		[]string{"databaseId", "containerId", "leaseDatabaseId", "leaseContainerId", "processorName",
			"changeFeedLagThreshold", "activationChangeFeedLagThreshold", "maxActiveLeasesPerReplica", "enableHighAvailability"})...)
	k.rest(t.Fields, "nothing is written for it", "type", "name", "metadata", "authenticationRef")
	e.Connection = k.connection(t, "connection", "endpoint", "cosmosDBKey")
	e.LeaseConnection = k.connection(t, "leaseConnection", "leaseEndpoint", "leaseCosmosDBKey")
	e.DatabaseID, e.ContainerID, e.ProcessorName = line(m.Get("databaseId")), line(m.Get("containerId")), line(m.Get("processorName"))
	e.LeaseDatabaseID, e.LeaseContainerID = line(m.Get("leaseDatabaseId")), line(m.Get("leaseContainerId"))
	if e.ProcessorName == "" {
		k.remark(m.Get("processorName"), "is missing, and KEDA counts nothing without it; the entry is for leases without a processor name, as Functions triggers write them")
	}
	available := isTrue(m.Get("enableHighAvailability"))
	e.OnlyWithLag = t.external || !available // KEDA caps by the leases with lag
	if t.external {
		e.Threshold = &yaml.Node{Kind: yaml.ScalarNode, Value: "1"} // one replica for each of them
		return
	}
	e.Threshold, e.Activation = number(m.Get("changeFeedLagThreshold")), number(m.Get("activationChangeFeedLagThreshold"))
	e.MaxLeases = number(m.Get("maxActiveLeasesPerReplica"))
	if available {
		k.remark(m.Get("enableHighAvailability"), "no count is held for leases that are caught up; %s", instead("enableHighAvailability"))
	}
	if e.MaxLeases != nil {
		k.remark(m.Get("maxActiveLeasesPerReplica"), "is carried over as maxLeasesPerReplica, which counts all leases, and only while changes are pending")
	}
}

func isTrue(v *yamltree.Node) bool { return strings.EqualFold(v.Text(), "true") }
