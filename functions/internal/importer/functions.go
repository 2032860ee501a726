package importer

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// apps makes entries of the functions of Functions apps.
type apps struct {
	*output
	local    map[string]yamltree.Node     // values of local.settings.json by folder, which may be secrets
	triggers map[string][]functionTrigger // by the folder of their app
}

// functionTrigger is the Cosmos DB trigger of a function, of version 4 of the extension
// (https://github.com/Azure/azure-webjobs-sdk-extensions, src/WebJobs.Extensions.CosmosDB/Trigger).
type functionTrigger struct {
	*yamltree.Node        // the binding
	name           string // of the function
	folder         string // of its app
	disabled       *yamltree.Node
}

// function keeps the Cosmos DB trigger of a function.
func (a *apps) function(v *yamltree.Node, name, folder string) {
	for _, binding := range v.Get("bindings").Items {
		if strings.EqualFold(binding.Get("type").Text(), "cosmosDBTrigger") {
			a.triggers[folder] = append(a.triggers[folder], functionTrigger{binding, name, folder, v.Get("disabled")})
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
			a.groups = append(a.groups, &entry{at: triggers[0].Node, name: group})
		}
		for _, t := range triggers {
			e := a.processor(t, group)
			e.name = a.freeName(t.name, e.get("containerId"))
			a.processors = append(a.processors, e)
			a.remark(t.Get("target"), "no file names what runs the function: to have feedscale scale it, give its entry or its group a target, {containerAppId: ID} or {deployment: NAME}; with a plan of Azure Functions it needs none")
		}
	}
}

// processor makes the entry of a trigger.
func (a *apps) processor(t functionTrigger, group string) *entry {
	e := &entry{at: t.Node}
	e.setText("group", group, "", t.Node)
	a.rest(t.Fields, "is not read; if feedscale has what it does, fill it in by hand",
		"type", "name", "direction", "dataType", "properties", "cardinality",
		"connection", "databaseName", "containerName", "leaseConnection", "leaseDatabaseName", "leaseContainerName",
		"leaseContainerPrefix", "startFromBeginning", "startFromTime", "leaseExpirationInterval", "maxItemsPerInvocation")
	connection := a.connection(t, t.Get("connection"), "CosmosDB")
	e.setText("connection", connection, "", t.Get("connection"))
	if v := t.Get("leaseConnection"); v.Text() != "" {
		e.setText("leaseConnection", a.connection(t, v, ""), connection, v)
	}
	for _, f := range []struct{ from, to string }{
		{"databaseName", "databaseId"}, {"containerName", "containerId"},
		{"leaseDatabaseName", "leaseDatabaseId"}, {"leaseContainerName", "leaseContainerId"},
		{"leaseContainerPrefix", "processorName"}, // TryCreateAsync of the extension: the prefix is the processor's name
	} {
		implied := map[string]string{"leaseDatabaseId": e.get("databaseId"), "leaseContainerId": "leases"}[f.to]
		e.setText(f.to, a.resolved(t, t.Get(f.from)), implied, t.Get(f.from))
	}
	if from := t.Get("startFromTime"); from.Text() != "" {
		e.setText("startFrom", from.Text(), "", from)
	} else if beginning := t.Get("startFromBeginning"); isTrue(beginning) {
		e.setText("startFrom", "beginning", "", beginning)
	}
	if v := t.Get("leaseExpirationInterval"); v.Present() {
		if d, err := time.ParseDuration(v.Text() + "ms"); err == nil {
			e.set("leaseExpiration", d.String(), v)
		}
	}
	// It is the target of the extension's target-based scaling (CosmosDBTargetScaler).
	if v := t.Get("maxItemsPerInvocation"); v.Present() {
		e.set("changeFeedLagThreshold", plain(v.Text()), v)
		a.remark(v, "is carried over as changeFeedLagThreshold: as many items per instance are what the target-based scaling of Functions aims at")
	}
	if isTrue(t.disabled) {
		e.set("paused", true, t.disabled)
		a.remark(t.disabled, "is carried over as paused: true: it is measured and shown, and nothing is published")
	} else if t.disabled.Present() && !strings.EqualFold(t.disabled.Text(), "false") {
		a.remark(t.disabled, "a setting says whether the function runs; write paused: true where it does not")
	}
	return e
}

// connection is the connection of a property, of the same name, since feedscale looks settings up
// as the extension does. fallback is the name that the extension assumes.
func (a *apps) connection(t functionTrigger, v *yamltree.Node, fallback string) string {
	name := a.resolved(t, v)
	if name == "" {
		name = fallback
		a.remark(v, "is missing; the trigger connects by %s then, and so does the entry", name)
	}
	if !config.IsSettingName(name) {
		a.remark(v, "is not the name of a setting; put what the application connects by into the setting that is listed")
		return a.account("app "+t.folder+" "+name, "COSMOS", Setting{What: "a connection string, as in the settings of the Functions app"})
	}
	var needs []Setting
	for _, f := range a.local[t.folder].Fields {
		prefix, suffix, fielded := strings.Cut(strings.ReplaceAll(f.Name, ":", "__"), "__")
		if fielded && strings.EqualFold(prefix, name) {
			needs = append(needs, Setting{Name: "__" + suffix, What: "as in the settings of the Functions app"})
		}
	}
	if needs == nil {
		needs = []Setting{{What: "a connection string, or __accountEndpoint behind it, as in the settings of the Functions app"}}
	}
	return a.account(variable(name), name, needs...) // KEDA triggers name the same variables
}

var placeholder = regexp.MustCompile(`%[^%]+%`)

// resolved replaces %NAME% by the value of the setting, as the host does: from this process, or
// else from local.settings.json. A value that may be a secret is not used.
func (a *apps) resolved(t functionTrigger, v *yamltree.Node) string {
	values := a.local[t.folder]
	return placeholder.ReplaceAllStringFunc(v.Text(), func(found string) string {
		name, from := strings.Trim(found, "%"), "the environment"
		value, _ := a.lookup(name)
		if value == "" {
			value, from = values.Get(name).Text(), "local.settings.json"
		}
		switch {
		case value == "":
			a.remark(v, "%s stands here as it is: feedscale knows no such placeholder; write the value of the setting %s", found, name)
		case len(value) > 64 || strings.ContainsAny(value, `=;/\#?`):
			a.remark(v, "%s stands here as it is: the value of %s in %s may be a secret, and is no name; write the name", found, name, from)
		default:
			a.remark(v, "%s is the value of %s in %s; check that it is the same where the application runs", found, name, from)
			return value
		}
		return found
	})
}
