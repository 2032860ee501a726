package config

import (
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// rivals finds entries that would work against each other: those that read the same leases, whose
// requests and events would come twice, and those that scale the same thing, each by its own count.
type rivals struct {
	reader
	leases  map[leases][]rival
	targets map[thing]rival
}

// leases identifies the leases that an entry reads.
type leases struct {
	leaseAccount, leaseDatabase, leaseContainer string
	processorName, accountHost                  string
	account, database, container                string
}

type rival struct {
	name   string
	line   int
	format changefeed.Family
}

// addProcessor adds a processor that was read from a node. Its group's target counts in place of
// its own.
func (r *rivals) addProcessor(p Processor, at *node) {
	if p.Name == "" || p.Connection.Endpoint == "" || p.LeaseConnection.Endpoint == "" || p.DatabaseID == "" || p.ContainerID == "" {
		return // a mistake of its own
	}
	key := leases{
		p.LeaseConnection.Endpoint, p.LeaseDatabaseID, p.LeaseContainerID,
		p.ProcessorName, strings.ToLower(p.AccountHost), // .NET lowers it in lease ids, and Java does not
		p.Connection.Endpoint, p.DatabaseID, p.ContainerID,
	}
	for _, first := range r.leases[key] {
		if first.format == p.LeaseFormat || first.format == "" || p.LeaseFormat == "" {
			r.mistake(at, fmt.Sprintf("reads the same leases as %s, on line %d; allowed is one entry for each processor. Two of one name, one of .NET and one of Java, need a leaseFormat each", first.name, first.line))
			break
		}
	}
	r.leases[key] = append(r.leases[key], rival{p.Name, at.line, p.LeaseFormat})
	if p.Group == "" {
		r.addTarget(p.Name, p.Target, at)
	}
}

// addTarget adds the target of a processor without a group, or of a group.
func (r *rivals) addTarget(name string, target map[string]string, at *node) {
	if name == "" {
		return
	}
	if own := at.member("target"); own != nil {
		at = own
	}
	for _, thing := range things(target) {
		if first, taken := r.targets[thing]; taken {
			r.mistake(at, fmt.Sprintf("names the same %s as the target of %s, on line %d; allowed is a target of its own, or one group that holds both, as in %s", thing.what, first.name, first.line, minimalGroups))
			continue
		}
		r.targets[thing] = rival{name: name, line: at.line}
	}
}

// thing is something that an action scales.
type thing struct{ what, id string }

// things returns what a target names for the actions that scale (docs/act.md): an object in
// Kubernetes, and a container app. Labels that an action would refuse name nothing.
func things(target map[string]string) []thing {
	var all []thing
	object := func(kind, name string) {
		if name != "" {
			_, what, _ := strings.Cut(kind, "/")
			all = append(all, thing{yamltree.QuoteName(what), kind + " " + target["namespace"] + " " + name})
		}
	}
	deployment, statefulSet := target["deployment"], target["statefulset"]
	switch {
	case deployment != "" && statefulSet != "":
	case deployment != "":
		object("apps/Deployment", deployment)
	case statefulSet != "":
		object("apps/StatefulSet", statefulSet)
	case target["apiVersion"] != "" && target["kind"] != "":
		group, _, grouped := strings.Cut(target["apiVersion"], "/")
		if !grouped {
			group = "" // the core group, whose apiVersion is a version alone
		}
		object(group+"/"+target["kind"], target["name"])
	}
	// Ids of Azure resources do not distinguish cases.
	const app = "container app"
	if id := target["containerAppId"]; id != "" {
		all = append(all, thing{app, strings.ToLower(id)})
	} else if name := target["containerApp"]; name != "" {
		all = append(all, thing{app, strings.ToLower("/subscriptions/" + target["subscriptionId"] + "/resourceGroups/" + target["resourceGroup"] + "/providers/Microsoft.App/containerApps/" + name)})
	}
	return all
}
