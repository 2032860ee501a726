package importer

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// apps makes entries of the functions of Functions apps.
type apps struct {
	*output
	triggers map[string][]functionTrigger // by the folder of their app
}

// functionTrigger is the Cosmos DB trigger of a function, of version 4 of the extension
// (https://github.com/Azure/azure-webjobs-sdk-extensions, src/WebJobs.Extensions.CosmosDB/Trigger).
type functionTrigger struct {
	*yamltree.Node        // the binding
	name           string // of the function
	disabled       *yamltree.Node
}

// function keeps the Cosmos DB trigger of a function.
func (a *apps) function(v *yamltree.Node, name, folder string) {
	for _, binding := range v.Get("bindings").Items {
		if strings.EqualFold(binding.Get("type").Text(), "cosmosDBTrigger") {
			a.triggers[folder] = append(a.triggers[folder], functionTrigger{binding, name, v.Get("disabled")})
			return
		}
	}
	a.remark(v, "this function has no cosmosDBTrigger; it is passed over")
}

// functions makes entries of the triggers. Several of one app are a group, since they share its
// instances.
func (a *apps) functions() {
	for _, folder := range slices.Sorted(maps.Keys(a.triggers)) {
		triggers, group := a.triggers[folder], ""
		if len(triggers) > 1 {
			group = a.freeName(cmp.Or(strings.Trim(path.Base(folder), "./"), "functions"))
			a.groups = append(a.groups, &entry{Name: group})
		}
		for _, t := range triggers {
			e := a.processor(t, folder)
			e.Name, e.Group = a.freeName(t.name, e.ContainerID), group
			a.processors = append(a.processors, e)
			a.remark(t.Get("target"), "no file names what runs the function: to have feedscale scale it, give its entry or its group a target, {containerAppId: ID} or {deployment: NAME}; with a plan of Azure Functions it needs none")
		}
	}
}

// processor makes the entry of a trigger of the app in a folder.
func (a *apps) processor(t functionTrigger, folder string) *entry {
	a.rest(t.Fields, "is not read; if feedscale has what it does, fill it in by hand",
		"type", "name", "direction", "dataType", "properties", "cardinality",
		"connection", "databaseName", "containerName", "leaseConnection", "leaseDatabaseName", "leaseContainerName",
		"leaseContainerPrefix", "startFromBeginning", "startFromTime", "leaseExpirationInterval", "maxItemsPerInvocation")
	for _, f := range t.Fields {
		if strings.Count(f.Text(), "%") > 1 {
			a.remark(f, "has a placeholder, which feedscale does not know; write the value of the setting")
		}
	}
	text := func(name string) string { return line(t.Get(name)) }
	e := &entry{
		Connection: a.connection(t.Get("connection"), folder),
		DatabaseID: text("databaseName"), ContainerID: text("containerName"),
		LeaseDatabaseID: text("leaseDatabaseName"), LeaseContainerID: text("leaseContainerName"),
		ProcessorName: text("leaseContainerPrefix"), // TryCreateAsync of the extension: the prefix is the processor's name
		StartFrom:     text("startFromTime"),
		Threshold:     number(t.Get("maxItemsPerInvocation")), // the target of its CosmosDBTargetScaler
		Paused:        isTrue(t.disabled),
	}
	if v := t.Get("leaseConnection"); v.Text() != "" {
		e.LeaseConnection = a.connection(v, folder)
	}
	if e.StartFrom == "" && isTrue(t.Get("startFromBeginning")) {
		e.StartFrom = "beginning"
	}
	if interval := text("leaseExpirationInterval"); interval != "" {
		e.LeaseExpiration = interval + "ms"
	}
	if e.Threshold != nil {
		a.remark(t.Get("maxItemsPerInvocation"), "is carried over as changeFeedLagThreshold: as many items per instance are what the target-based scaling of Functions aims at")
	}
	if e.Paused {
		a.remark(t.disabled, "is carried over as paused: true: it is measured and shown, and nothing is published")
	} else if t.disabled.Present() && !strings.EqualFold(t.disabled.Text(), "false") {
		a.remark(t.disabled, "a setting says whether the function runs; write paused: true where it does not")
	}
	return e
}

// connection is the connection of a property, of the same name, since feedscale looks settings up
// as the extension does.
func (a *apps) connection(v *yamltree.Node, folder string) string {
	name := v.Text()
	if name == "" {
		name = "CosmosDB" // as the extension assumes
		a.remark(v, "is missing; the trigger connects by %s then, and so does the entry", name)
	}
	if !config.IsSettingName(name) {
		a.remark(v, "is not the name of a setting; put what the application connects by into the setting that is listed")
		return a.account("app "+folder+" "+name, "COSMOS", Setting{What: "a connection string, as in the settings of the Functions app"})
	}
	// KEDA's triggers name the same variables.
	return a.account(variable(name), name, Setting{What: "a connection string, or __accountEndpoint behind it, as in the settings of the Functions app"})
}
