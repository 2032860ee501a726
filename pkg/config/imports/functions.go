package imports

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// app is a Functions app: what its functions share.
type app struct {
	host  value // host.json
	local value // local.settings.json, whose values are secrets
}

// app returns the app in a folder.
func (c *converter) app(folder string) *app {
	if c.apps[folder] == nil {
		c.apps[folder] = &app{}
	}
	return c.apps[folder]
}

// functionTrigger is the Cosmos DB trigger of a function
// (https://github.com/Azure/azure-webjobs-sdk-extensions, src/WebJobs.Extensions.CosmosDB/Trigger).
type functionTrigger struct {
	value           // the binding
	name     string // of the function
	folder   string // of its app
	disabled value
}

// app names the app of a function.
func (t functionTrigger) app() string {
	return strings.TrimSpace("the Functions app " + entryName(path.Base(t.folder)))
}

// function keeps the trigger of a function, if it is one of Cosmos DB.
func (c *converter) function(v value, name, folder string) {
	for _, binding := range v.getFold("bindings").items() {
		if strings.EqualFold(binding.getFold("type").text(), "cosmosDBTrigger") {
			c.app(folder)
			c.triggers = append(c.triggers, functionTrigger{binding, name, folder, v.getFold("disabled")})
			return
		}
	}
	c.remark(v, "this function has no cosmosDBTrigger; it is passed over")
}

// functions makes entries of the triggers. Those of one app run in the same instances, as a group
// does.
func (c *converter) functions() {
	members := map[string]int{}
	for _, t := range c.triggers {
		members[t.folder]++
	}
	groups := map[string]*entry{}
	for _, t := range c.triggers {
		e := c.functionProcessor(t)
		if e == nil {
			continue
		}
		if members[t.folder] > 1 {
			g := groups[t.folder]
			if g == nil {
				g = &entry{at: t.value, name: c.freeName(entryName(path.Base(t.folder)), "functions")}
				groups[t.folder] = g
				c.groups = append(c.groups, g)
			}
			e.fields = append([]field{{"group", text(g.name), t.value}}, e.fields...)
		}
		e.name = c.freeName(t.name, e.get("containerId"))
		if c.add(e) {
			c.remark(t.at(".target", t.node), "nothing says what runs the function; give %s a target, {containerAppId: ID} or {deployment: NAME}, where feedscale is to scale it, and none where a plan of Azure Functions does", cmp.Or(e.get("group"), e.name))
		}
	}
	c.groups = slices.DeleteFunc(c.groups, func(g *entry) bool {
		empty := !slices.ContainsFunc(c.processors, func(e *entry) bool { return e.get("group") == g.name })
		if empty {
			delete(c.names, g.name)
		}
		return empty
	})
	c.hosts()
}

// functionProcessor makes the entry of a trigger. The names of its properties are those of version 4
// of the extension or, behind them, of version 3. It is nil where the trigger lacks what every entry
// needs.
func (c *converter) functionProcessor(t functionTrigger) *entry {
	e := &entry{at: t.value}
	get := func(names ...string) value {
		for _, name := range names {
			if v := t.getFold(name); v.present() {
				return v
			}
		}
		return t.getFold(names[0])
	}
	if !c.there(get("databaseName"), get("containerName", "collectionName")) {
		return nil
	}
	connection := get("connection", "connectionStringSetting")
	name := c.functionConnection(t, connection, "CosmosDB")
	e.set("connection", text(name), connection)
	database := get("databaseName")
	databaseID := c.resolved(t, database)
	container := get("containerName", "collectionName")
	e.set("databaseId", text(databaseID), database)
	e.set("containerId", text(c.resolved(t, container)), container)
	if v := get("leaseConnection", "leaseConnectionStringSetting"); v.text() != "" {
		if lease := c.functionConnection(t, v, ""); lease != name {
			e.set("leaseConnection", text(lease), v)
		}
	}
	if v := get("leaseDatabaseName"); v.text() != "" {
		if id := c.resolved(t, v); id != databaseID {
			e.set("leaseDatabaseId", text(id), v)
		}
	}
	if v := get("leaseContainerName", "leaseCollectionName"); v.text() != "" {
		if id := c.resolved(t, v); id != "leases" {
			e.set("leaseContainerId", text(id), v)
		}
	}
	// The prefix is the processor's name; without one it is empty (both: BuildProcessorOptions of
	// version 3, TryCreateAsync of version 4).
	if v := get("leaseContainerPrefix", "leaseCollectionPrefix"); v.text() != "" {
		e.set("processorName", text(c.resolved(t, v)), v)
	} else if v := c.hostPrefix(t); v.text() != "" {
		e.set("processorName", text(v.text()), v)
	}
	c.start(e, t)
	if v := get("leaseExpirationInterval"); v.present() {
		if n, ok := v.integer(); ok && n > 0 {
			e.set("leaseExpiration", text((time.Duration(n) * time.Millisecond).String()), v)
		}
	}
	// As many items per instance are what the target scaler of the extension aims at
	// (CosmosDBTargetScaler).
	if v := get("maxItemsPerInvocation"); v.present() {
		if n, ok := v.integer(); ok && n > 0 {
			e.set("changeFeedLagThreshold", plain(strconv.Itoa(n)), v)
			c.remark(v, "is carried over as changeFeedLagThreshold: as many items per instance are what the target-based scaling of Functions aims at")
		}
	}
	if t.disabled.isTrue() {
		e.set("paused", plain("true"), t.disabled)
		c.remark(t.disabled, "is carried over as paused: true: it is measured and shown, and nothing is published")
	} else if t.disabled.present() && !strings.EqualFold(t.disabled.text(), "false") {
		c.remark(t.disabled, "a setting says whether the function runs; write paused: true where it does not")
	}
	c.restOfBinding(t)
	return e
}

// start carries over from where a lease without a checkpoint is read.
func (c *converter) start(e *entry, t functionTrigger) {
	beginning, from := t.getFold("startFromBeginning"), t.getFold("startFromTime")
	switch {
	case from.text() != "":
		at := from.text()
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			// DateTime.TryParse takes a time without a zone for one of the host's, which is UTC in Azure.
			for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02"} {
				if parsed, err := time.Parse(layout, at); err == nil {
					at = parsed.Format(time.RFC3339)
					c.remark(from, "has no time zone; it is taken for UTC, the time of a host in Azure")
					break
				}
			}
		}
		e.set("startFrom", text(at), from)
		if beginning.isTrue() {
			c.remark(beginning, "the trigger does not start with both this and startFromTime, which is carried over")
		}
	case beginning.isTrue():
		e.set("startFrom", text("beginning"), beginning)
	}
}

// functionConnection is the connection that a property names: the same name, since both look
// settings up alike. fallback is that of the extension.
func (c *converter) functionConnection(t functionTrigger, v value, fallback string) string {
	name := v.text()
	if name == "" {
		name = fallback
		c.remark(v, "is missing; the trigger connects by %s then, and so does the entry", name)
	} else if strings.Contains(name, "%") {
		name = c.resolved(t, v)
	}
	if !settingForm.MatchString(name) {
		c.remark(v, "is not the name of a setting; put what the application connects by into the setting that is listed")
		return c.account("app "+t.folder+" "+name, "COSMOS", need{what: "a connection string, as in the settings of", from: []string{t.app()}})
	}
	id := "env " + name // KEDA triggers name the same variables
	return c.account(id, name, c.functionNeeds(t, name)...)
}

// functionNeeds are the settings of a connection, as far as local.settings.json names them.
func (c *converter) functionNeeds(t functionTrigger, name string) []need {
	var needs []need
	for _, m := range c.app(t.folder).local.getFold("Values").members() {
		setting := strings.ReplaceAll(m.name, ":", "__")
		prefix, suffix, fielded := strings.Cut(setting, "__")
		if fielded && strings.EqualFold(prefix, name) {
			needs = append(needs, need{suffix: "__" + suffix, what: "as in the settings of", from: []string{t.app()}})
		}
	}
	if needs == nil {
		needs = []need{{what: "a connection string, or __accountEndpoint behind it, as in the settings of", from: []string{t.app()}}}
	}
	return needs
}

// hostPrefix is the prefix of leases in host.json, which version 3 of the extension falls back to,
// and version 1 of Functions in an object of its own.
func (c *converter) hostPrefix(t functionTrigger) value {
	host := c.app(t.folder).host
	for _, options := range []value{host.getFold("extensions", "cosmosDB"), host.getFold("documentDB")} {
		if v := options.getFold("leaseOptions", "leasePrefix"); v.text() != "" {
			if t.getFold("collectionName").present() {
				return v
			}
			c.remark(v, "version 4 of the extension does not read it; the leases of %s have no prefix", t.name)
		}
	}
	return value{}
}

// hosts says what of each host.json was not carried over.
func (c *converter) hosts() {
	for _, app := range c.apps {
		for _, options := range []value{app.host.getFold("extensions", "cosmosDB"), app.host.getFold("documentDB")} {
			for _, m := range options.members() {
				if !strings.EqualFold(m.name, "leaseOptions") {
					c.remark(m.value, "is the application's own; there is nothing to write for it")
				}
			}
			for _, m := range options.getFold("leaseOptions").members() {
				if !strings.EqualFold(m.name, "leasePrefix") {
					c.remark(m.value, "is the application's own; there is nothing to write for it")
				}
			}
		}
	}
}

// restOfBinding says what was not carried over.
func (c *converter) restOfBinding(t functionTrigger) {
	for _, m := range t.members() {
		switch strings.ToLower(m.name) {
		case "type", "name", "direction", "datatype", "properties", "cardinality",
			"connection", "connectionstringsetting", "databasename", "containername", "collectionname",
			"leaseconnection", "leaseconnectionstringsetting", "leasedatabasename", "leasecontainername", "leasecollectionname",
			"leasecontainerprefix", "leasecollectionprefix", "startfrombeginning", "startfromtime", "leaseexpirationinterval", "maxitemsperinvocation":
			continue
		}
		switch known, ok := equivalent(m.name); {
		case strings.HasPrefix(strings.ToLower(m.name), "create") && !m.value.isTrue():
		case ok:
			c.remark(m.value, "%s", known)
		default:
			c.remark(m.value, "there is nothing to write for it")
		}
	}
}

// resolved puts the values of settings in place of %NAME%, as the host does. A value is taken from
// the settings of this process, else from local.settings.json; it is shown only where it can be the
// name of something, and is no secret.
func (c *converter) resolved(t functionTrigger, v value) string {
	whole := v.text()
	parts := strings.Split(whole, "%")
	if len(parts) < 3 {
		return whole
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for i := 1; i < len(parts); i += 2 {
		if i+1 == len(parts) { // a single %
			b.WriteString("%" + parts[i])
			break
		}
		b.WriteString(c.setting(t, v, parts[i]))
		b.WriteString(parts[i+1])
	}
	return b.String()
}

// setting is the value for %NAME%, or %NAME% itself.
func (c *converter) setting(t functionTrigger, v value, name string) string {
	const asItIs = "%%%s%% stands here as it is"
	from := "the environment"
	value, ok := c.lookup(name)
	if local := c.app(t.folder).local; (!ok || value == "") && !local.getFold("IsEncrypted").isTrue() {
		value, from = local.getFold("Values", name).text(), "local.settings.json"
	}
	switch {
	case value == "":
		c.remark(v, asItIs+": feedscale knows no such placeholder; write the value of the setting %s", name, name)
	case len(value) > 64 || strings.ContainsAny(value, `=;/\#?`):
		c.remark(v, asItIs+": the value of %s in %s may be a secret, and is no name; write the name", name, name, from)
	default:
		c.remark(v, "%%%s%% is the value of %s in %s; check that it is the same where the application runs", name, name, from)
		return value
	}
	return "%" + name + "%"
}
