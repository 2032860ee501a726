package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// minimalGroups is the example of groups in mistakes.
const minimalGroups = "groups: [{name: shop-workers, target: {deployment: shop-workers}}]"

// at returns the value at a path, "fallback.replicas".
func (e entry) at(path string) *yamltree.Node { return e.node.Get(strings.Split(path, ".")...) }

// mistake adds a mistake of a rule. The value is still read, for entries that inherit it.
func (e entry) mistake(n *yamltree.Node, text string) { e.mistakes.Add(n.Mistake(text)) }

// clash adds a mistake of values that contradict each other, unless one of them has a mistake. Its
// place is the first value that the entry itself has, else that it inherits, else the entry.
func (e entry) clash(wrong bool, text string, paths ...string) {
	if !wrong {
		return
	}
	place := e.node
	for _, path := range slices.Backward(paths) {
		n := e.at(path)
		if n.Bad {
			return
		}
		if own := strings.HasPrefix(n.Path(), e.node.Path()); n.Present() && (own || place == e.node) {
			place = n
		}
	}
	e.mistake(place, text)
}

// checkPolicy adds the mistakes across the fields of a policy.
func (e entry) checkPolicy(f policyFields) {
	e.clash(f.ActivationChangeFeedLagThreshold >= f.ChangeFeedLagThreshold,
		fmt.Sprintf("activationChangeFeedLagThreshold is %d and changeFeedLagThreshold %d; allowed is an activation below the threshold", f.ActivationChangeFeedLagThreshold, f.ChangeFeedLagThreshold),
		"activationChangeFeedLagThreshold", "changeFeedLagThreshold")
	e.checkBounds(f.MinReplicaCount, f.MaxReplicaCount)
	if !e.at("fallback.replicas").Bad {
		e.clash(needsReplicas(f.Fallback.Behavior) && f.Fallback.Replicas == nil,
			fmt.Sprintf("%s needs replicas; allowed is a whole number, 0 or more, in replicas", f.Fallback.Behavior), "fallback.behavior")
	}
	for _, window := range e.at("schedules").Items {
		if start, end := window.Get("start"), window.Get("end"); !end.Bad && start.Text() == end.Text() && end.Text() != "" {
			e.mistake(end, "start and end are the same; allowed are two that differ") // as in KEDA
		}
	}
}

func (e entry) checkBounds(least int, most *int) {
	if most != nil {
		e.clash(least > *most, fmt.Sprintf("minReplicaCount is %d and maxReplicaCount %d; allowed is a minimum up to the maximum", least, *most), "minReplicaCount", "maxReplicaCount")
	}
}

// checkGroups adds the mistakes between processors and groups.
func (d *documentReader) checkGroups(read Document) {
	members := map[string]int{} // by group
	for _, g := range read.Groups {
		members[g.Name] = 0
	}
	delete(members, "") // a mistake of its own
	known := slices.Sorted(maps.Keys(members))
	for i, e := range d.entries("processors") {
		p := read.Processors[i]
		if p.Group == "" {
			continue
		}
		members[p.Group]++
		if len(known) == 0 {
			e.mistake(e.at("group"), fmt.Sprintf("there is no group %s; allowed is the name of one, as in %s", yamltree.QuoteName(p.Group), minimalGroups))
		} else if !slices.Contains(known, p.Group) {
			e.mistake(e.at("group"), unknown("group", p.Group, known))
		}
		if p.SignalQueue != "" {
			e.mistake(e.at("signalQueue"), fmt.Sprintf("has no effect in a member of a group; allowed is a signalQueue of the group %s", yamltree.QuoteName(p.Group)))
		}
	}
	for i, e := range d.entries("groups") {
		if name := read.Groups[i].Name; name != "" && members[name] == 0 {
			e.mistake(e.node, "has no members; allowed is a group that a processor names in its field group")
		}
	}
}

// claim is what only one entry may have: a name, leases, a target, a queue.
type claim struct {
	owner string // the name of the entry
	line  int
	terms string // on which others may share it
}

// claim takes something for the entry, or returns the earlier claim of another entry.
func (e entry) claim(what, owner string, terms string) (first claim, taken bool) {
	if first, taken = e.claims[what]; !taken {
		e.claims[what] = claim{owner, e.node.Line, terms}
	}
	return first, taken
}

// claimName takes the name of an entry, which is unique among processors and groups.
func (e entry) claimName(name string) {
	if first, taken := e.claim("name "+name, name, ""); taken && name != "" {
		e.mistake(e.node.Get("name"), fmt.Sprintf("%s is the name of another entry, on line %d; allowed is a name of its own", yamltree.QuoteName(name), first.line))
	}
}

// claimLeases takes the leases of a processor: two with the same would double requests and events.
func (e entry) claimLeases(p Processor) {
	if p.Name == "" || p.Connection.Endpoint == "" || p.LeaseConnection.Endpoint == "" || p.DatabaseID == "" || p.ContainerID == "" {
		return // a mistake of its own
	}
	formats := []changefeed.Family{p.LeaseFormat}
	if p.LeaseFormat == "" {
		formats = []changefeed.Family{changefeed.FamilyDotNet, changefeed.FamilyJava}
	}
	for _, format := range formats {
		what := fmt.Sprintf("leases %q", []string{
			string(format), p.LeaseConnection.Endpoint, p.LeaseDatabaseID, p.LeaseContainerID,
			p.ProcessorName, strings.ToLower(p.AccountHost), // .NET lowers it in lease ids, and Java does not
			p.Connection.Endpoint, p.DatabaseID, p.ContainerID,
		})
		if first, taken := e.claim(what, p.Name, ""); taken {
			e.mistake(e.node, fmt.Sprintf("reads the same leases as %s, on line %d; allowed is one entry for each processor. Two of one name, one of .NET and one of Java, need a leaseFormat each", first.owner, first.line))
			return
		}
	}
}

// claimTarget takes what a target names for the actions: two entries would each set a count.
func (e entry) claimTarget(name string, target map[string]string) {
	if name == "" {
		return
	}
	for what, id := range things(target) {
		if first, taken := e.claim("target "+id, name, ""); taken {
			e.mistake(e.at("target"), fmt.Sprintf("names the same %s as the target of %s, on line %d; allowed is a target of its own, or one group that holds both, as in %s", what, first.owner, first.line, minimalGroups))
		}
	}
}

// things returns the ids of what a target names for the actions that scale (docs/act.md), by kind:
// an object in Kubernetes, and a container app. Labels that an action would refuse name nothing.
func things(target map[string]string) map[string]string {
	all := map[string]string{}
	group, _, _ := strings.Cut(target["apiVersion"], "/")
	kind, name := target["kind"], target["name"]
	switch deployment, statefulSet := target["deployment"], target["statefulset"]; {
	case deployment != "" && statefulSet != "":
		name = ""
	case deployment != "":
		group, kind, name = "apps", "Deployment", deployment
	case statefulSet != "":
		group, kind, name = "apps", "StatefulSet", statefulSet
	case target["apiVersion"] == "":
		name = ""
	}
	if kind != "" && name != "" {
		all[yamltree.QuoteName(kind)] = group + "/" + kind + " " + target["namespace"] + " " + name
	}
	// Ids of Azure resources do not distinguish cases.
	if id := target["containerAppId"]; id != "" {
		all["container app"] = strings.ToLower(id)
	} else if name := target["containerApp"]; name != "" {
		all["container app"] = strings.ToLower("/subscriptions/" + target["subscriptionId"] + "/resourceGroups/" + target["resourceGroup"] + "/providers/Microsoft.App/containerApps/" + name)
	}
	return all
}

// claimThroughput takes a container. Processors that provision it alike may share it.
func (e entry) claimThroughput(processor *yamltree.Node, name string, t Throughput, c ThroughputContainer) {
	container := strings.TrimSuffix(c.DatabaseID+"/"+c.ContainerID, "/")
	terms := fmt.Sprint(t.Mode, c.Min, c.Max, t.ScaleDownAfter)
	switch first, taken := e.claim("container "+c.Connection.Endpoint+container, name, terms); {
	case taken && first.owner == name:
		e.mistake(e.node, "names the same container as another entry; allowed is one entry for each container")
	case taken && first.terms != terms:
		e.mistake(processor, fmt.Sprintf("its throughput of %s has another mode, min, max or scaleDownAfter than that of %s, on line %d; allowed is the same in both, since their needs add up", container, first.owner, first.line))
	}
}

// claimSignalQueue takes a signal queue (docs/signal-queue.md): two entries would take each other's
// messages. It is in the namespace of the events. Service Bus ignores the case of names.
func (e entry) claimSignalQueue(name string) {
	if name == "" {
		return
	}
	text := ""
	switch first, taken := e.claim("queue "+strings.ToLower(name), "", ""); {
	case taken:
		text = fmt.Sprintf("%s is the signal queue of another entry, on line %d; allowed is a queue of its own, since its messages are counted", yamltree.QuoteName(name), first.line)
	case e.events == nil:
	case e.events.Queue == "":
		text = "needs a Service Bus namespace, and FEEDSCALE_EVENTS names none; allowed is a signalQueue if it is servicebus:SETTING/QUEUE"
	case strings.EqualFold(name, e.events.Queue):
		text = yamltree.QuoteName(name) + " is the queue of the scale events (FEEDSCALE_EVENTS); allowed is another one, since its messages are counted"
	case e.events.ServiceBus.Entity != "":
		text = fmt.Sprintf("needs a connection string of the namespace, and that in setting %s is for the entity %s alone (EntityPath)", e.events.ServiceBus.Setting, yamltree.Quote(e.events.ServiceBus.Entity))
	}
	if text != "" {
		e.mistake(e.at("signalQueue"), text)
	}
}
