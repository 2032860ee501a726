package config

import (
	"fmt"
	"slices"

	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Group is processors that run in one deployment, which gets the highest count that any of them asks
// for (docs/configure.md, Groups).
type Group struct {
	Name        string // unique among groups and processors
	Policy      scaling.GroupPolicy
	SignalQueue string            // queue that holds a message for each replica that is wanted; "" = none
	Target      map[string]string // labels that every scale event of the group carries; never nil
}

// minimalGroups is the example of groups in mistakes.
const minimalGroups = "groups: [{name: shop-workers, target: {deployment: shop-workers}}]"

// group reads one group.
func (d *documentReader) group(n *node) Group {
	o := d.object(n)
	o.require("name", "a name of its own in every group, "+events.NameForm)
	g := Group{
		Name:        o.text("name", "", checkName),
		SignalQueue: o.signalQueue(),
		Target:      d.target(o.get("target")),
	}
	g.Policy.MinReplicas, g.Policy.MaxReplicas = replicaBounds(o)
	o.close()
	return g
}

// replicaBounds reads minReplicaCount and maxReplicaCount.
func replicaBounds(o *object) (least int, most *int) {
	least = integer(o, "minReplicaCount", 0, 0, maxReplicas)
	if o.get("maxReplicaCount") != nil {
		n := integer(o, "maxReplicaCount", maxReplicas, 1, maxReplicas)
		most = &n
	}
	if o.sound("minReplicaCount", "maxReplicaCount") && most != nil && *most < least {
		o.clash(fmt.Sprintf("minReplicaCount is %d and maxReplicaCount %d; allowed is a minimum up to the maximum", least, *most),
			"minReplicaCount", "maxReplicaCount")
	}
	return least, most
}

// checkGroup reports a group that does not exist.
func (d *documentReader) checkGroup(name string, at *node, groups []Group) {
	if name == "" {
		return
	}
	var known []string
	for _, g := range groups {
		if g.Name == name {
			return
		}
		if g.Name != "" && !slices.Contains(known, g.Name) {
			known = append(known, g.Name)
		}
	}
	if len(known) == 0 {
		d.mistake(at, fmt.Sprintf("there is no group %s; allowed is the name of one, as in %s", yamltree.QuoteName(name), minimalGroups))
		return
	}
	d.mistake(at, unknown("group", name, known))
}
