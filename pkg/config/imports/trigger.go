package imports

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
)

// trigger is a trigger for Cosmos DB: KEDA's own
// (https://github.com/kedacore/keda, pkg/scalers/azure_cosmosdb_scaler.go), or the community's
// external scaler (https://github.com/kedacore/external-scaler-azure-cosmos-db,
// src/Scaler/Services/ScalerMetadata.cs).
type trigger struct {
	value
	external       bool
	metadata       value
	authentication authentication
	workload       string // whose environment ...FromEnv names: "Deployment shop/orders"
}

// newTrigger looks up how a trigger signs in.
func (c *converter) newTrigger(v value, external bool, namespace, workload string) trigger {
	t := trigger{value: v, external: external, metadata: v.get("metadata"), workload: workload}
	a, named, found := c.referred(v, namespace)
	switch {
	case named && !found:
		c.remark(v.get("authenticationRef"), "no file has this object, which says how KEDA signs in; add its file to the import, or make the settings that are listed as you know them")
	case found && external:
		c.remark(v.get("authenticationRef"), "KEDA hands no parameters of a TriggerAuthentication to an external scaler; they are used here all the same")
	}
	t.authentication = a
	for _, way := range a.foreign {
		c.remark(way, "there is no equivalent of this way to sign in; %s", instead("authenticationRef"))
	}
	return t
}

// equivalent is what to do in place of a field that is carried over as nothing; ok is false where
// config does not know the field.
func equivalent(field string) (text string, ok bool) {
	text, ok = config.Instead(field)
	return strings.TrimSuffix(text, "; leave it out"), ok
}

// instead is the text of equivalent, for fields that config knows.
func instead(field string) string {
	text, _ := equivalent(field)
	return text
}

// source finds the value of a parameter as KEDA does: in the authentication, then in the environment
// of the workload, then in the trigger itself.
func (t trigger) source(parameter string) (source, bool) {
	if s, ok := t.authentication.parameters[parameter]; ok {
		return s, true
	}
	if v := t.metadata.get(parameter + "FromEnv"); v.present() {
		return fromEnvironment(v, v.text()), true
	}
	if v := t.metadata.get(parameter); v.present() {
		return source{at: v, id: "literal " + v.text(), wanted: "COSMOS", literal: v.text()}, true
	}
	return source{}, false
}

// need is the setting for the value of a source.
func (t trigger) need(suffix, what string, s source) need {
	if s.env {
		return need{suffix: suffix, what: what + ", that of the variable " + s.what + " of", from: []string{t.workload}}
	}
	return need{suffix: suffix, what: what + ", that of " + s.what}
}

// connection returns the name of the setting for an account, and where the trigger names it; "" for
// leases in the account of the monitored container. prefix is "" or "lease".
func (c *converter) connection(t trigger, prefix string) (name string, at value) {
	parameter := func(name string) string {
		if prefix == "" {
			return name
		}
		return prefix + strings.ToUpper(name[:1]) + name[1:]
	}
	connection, byString := t.source(parameter("connection"))
	endpoint, byEndpoint := t.source(parameter("endpoint"))
	switch {
	case byString && connection.literal != "":
		return c.literalConnection(connection), connection.at
	case byString:
		return c.account(connection.id, connection.wanted, t.need("", "a connection string", connection)), connection.at
	case byEndpoint:
		return c.endpoint(t, parameter("cosmosDBKey"), endpoint), endpoint.at
	case prefix != "":
		return "", value{}
	}
	ref := t.get("authenticationRef", "name")
	if ref.text() == "" {
		c.remark(t.value, "says neither connectionFromEnv nor endpoint; make the setting that is listed as the application connects")
	}
	return c.account("unknown "+ref.text(), settingName(ref.text()),
		need{what: "a connection string, or the endpoint in the same name with __accountEndpoint behind it, for the account of", from: []string{t.workload}}), t.value
}

// literalConnection is the setting for a connection string that stands in the trigger itself. It is
// named after the account, and nothing else of it is shown.
func (c *converter) literalConnection(s source) string {
	wanted := "COSMOS"
	for part := range strings.SplitSeq(s.literal, ";") {
		if endpoint, ok := strings.CutPrefix(strings.TrimSpace(part), "AccountEndpoint="); ok {
			if _, name, ok := endpointOf(endpoint); ok {
				wanted = settingName("COSMOS", name)
			}
		}
	}
	name := c.account(s.id, wanted, need{what: "the connection string that stands in the trigger"})
	c.remark(s.at, "a connection string stands here as it is, and is not repeated; put it into the setting %s, and change its key if others can read this file", name)
	return name
}

// endpoint is the connection for an endpoint with a key or an identity.
func (c *converter) endpoint(t trigger, keyParameter string, endpoint source) string {
	id, wanted := "endpoint "+endpoint.id, endpoint.wanted
	at := t.need("__accountEndpoint", "the endpoint of the account", endpoint)
	if endpoint.literal != "" {
		at = need{suffix: "__accountEndpoint", what: "the endpoint of the account"}
		shown, name, ok := endpointOf(endpoint.literal)
		if ok {
			at.value, wanted = shown, settingName("COSMOS", name)
		} else {
			c.remark(endpoint.at, "is no address of an account; put https://ACCOUNT.documents.azure.com/ into the setting that is listed")
		}
	}
	needs := []need{at}
	if key, ok := t.source(keyParameter); ok {
		id += " key " + key.id
		if key.literal != "" {
			c.remark(key.at, "a key stands here as it is, which KEDA does not read and which is not repeated; put it into the setting that is listed")
			return c.account(id, wanted, append(needs, need{suffix: "__accountKey", what: "a key of the account"})...)
		}
		return c.account(id, wanted, append(needs, t.need("__accountKey", "a key of the account", key))...)
	}
	identity, more := c.identity(t)
	return c.account(id+identity, wanted, append(needs, more...)...)
}

// identity returns the settings for the identity that signs in.
func (c *converter) identity(t trigger) (id string, needs []need) {
	pod := t.authentication.identity
	provider := pod.get("provider").text()
	client, tenant := pod.get("identityId"), pod.get("identityTenantId")
	switch {
	case provider == "azure-workload":
		c.remark(pod, "feedscale signs in with its own identity, not with KEDA's: give it the role Cosmos DB Built-in Data Reader (docs/permissions.md)")
	case pod.present() && provider != "none" && provider != "":
		c.remark(pod, "there is no equivalent of the provider %q; %s", provider, instead("podIdentity"))
	case t.external:
		client = t.metadata.get("clientId")
	default:
		c.servicePrincipal(t)
	}
	if host := pod.get("identityAuthorityHost"); host.present() {
		c.remark(host, "%s", instead("activeDirectoryEndpoint"))
	}
	for _, part := range []struct {
		suffix, what string
		value        value
	}{
		{"__clientId", "the client id of the identity, where it is feedscale's, too", client},
		{"__tenantId", "the tenant of the identity", tenant},
	} {
		if text := part.value.text(); text != "" {
			id += " " + text
			needs = append(needs, need{suffix: part.suffix, value: text, what: part.what})
		}
	}
	if resource := t.metadata.get("cosmosDBResourceURL"); resource.present() && strings.EqualFold(t.metadata.get("cloud").text(), "Private") {
		if url, _, ok := endpointOf(resource.text()); ok {
			id += " " + url
			needs = append(needs, need{suffix: "__tokenScope", value: strings.TrimSuffix(url, "/") + "/.default", what: "the scope of the identity's token"})
		}
	}
	return id, needs
}

// servicePrincipal is signed in with by the environment variables of azidentity's
// EnvironmentCredential, which are for the whole process.
func (c *converter) servicePrincipal(t trigger) {
	for _, p := range []struct{ parameter, setting, what string }{
		{"tenantId", "AZURE_TENANT_ID", "the tenant of the service principal"},
		{"clientId", "AZURE_CLIENT_ID", "the client id of the service principal"},
		{"clientSecret", "AZURE_CLIENT_SECRET", "the secret of the service principal"},
	} {
		s, ok := t.source(p.parameter)
		if !ok {
			continue
		}
		what := need{what: p.what}
		if s.literal == "" {
			what = t.need("", p.what, s)
		}
		c.account("process "+p.setting, p.setting, what)
		c.remark(s.at, "goes into %s, which is one for all connections; with a managed identity it is not needed", p.setting)
	}
}

// processor makes the entry of a trigger, without what the ScaledObject says for all of its
// triggers; nil where it lacks what every entry needs.
func (c *converter) processor(t trigger) *entry {
	e := &entry{at: t.value}
	m := t.metadata
	if !c.there(m.get("databaseId"), m.get("containerId")) {
		c.restOfMetadata(t)
		return nil
	}
	connection, at := c.connection(t, "")
	e.set("connection", text(connection), at)
	database := m.get("databaseId")
	for _, field := range []string{"databaseId", "containerId"} {
		if v := m.get(field); v.present() {
			e.set(field, text(v.text()), v)
		}
	}
	if lease, at := c.connection(t, "lease"); lease != "" && lease != connection {
		e.set("leaseConnection", text(lease), at)
	}
	if v := m.get("leaseDatabaseId"); v.present() && v.text() != database.text() {
		e.set("leaseDatabaseId", text(v.text()), v)
	}
	if v := m.get("leaseContainerId"); v.present() && v.text() != "leases" {
		e.set("leaseContainerId", text(v.text()), v)
	}
	if v := m.get("processorName"); v.text() != "" {
		e.set("processorName", text(v.text()), v)
	} else {
		c.remark(m.get("processorName"), "is missing, without which KEDA counts nothing; the entry is for leases without a name, as Functions triggers write them")
	}
	c.sizing(e, t)
	c.restOfMetadata(t)
	return e
}

// there reports whether fields are there without which there is no entry.
func (c *converter) there(fields ...value) bool {
	all := true
	for _, v := range fields {
		if v.text() == "" {
			c.remark(v, "is missing, without which nothing can be measured; no entry is made")
			all = false
		}
	}
	return all
}

// sizing carries over how many replicas a trigger asks for.
func (c *converter) sizing(e *entry, t trigger) {
	m := t.metadata
	if t.external {
		// One replica for each partition with lag, which is what these two come to.
		e.set("changeFeedLagThreshold", plain("1"), t.value)
		e.set("limitToPartitionsWithLag", plain("true"), t.value)
	} else {
		for _, field := range []string{"changeFeedLagThreshold", "activationChangeFeedLagThreshold"} {
			if v := m.get(field); v.present() {
				e.set(field, plain(v.text()), v)
			}
		}
		available := m.get("enableHighAvailability")
		if available.isTrue() {
			c.remark(available, "no count is held for leases that are caught up; %s", instead("enableHighAvailability"))
		} else {
			// KEDA caps by the leases with lag.
			e.set("limitToPartitionsWithLag", plain("true"), t.value)
		}
		if v := m.get("maxActiveLeasesPerReplica"); v.present() {
			e.set("maxLeasesPerReplica", plain(v.text()), v)
			c.remark(v, "is carried over as maxLeasesPerReplica, which counts all leases while changes are pending, not only those with lag")
		}
	}
	if v := t.get("metricType"); v.present() && v.text() != "AverageValue" {
		c.remark(v, "%s", instead("metricType"))
	}
}

// carried are the fields of a trigger's metadata that became something.
var carried = map[string]bool{
	"databaseId": true, "containerId": true, "leaseDatabaseId": true, "leaseContainerId": true, "processorName": true,
	"connection": true, "connectionFromEnv": true, "leaseConnection": true, "leaseConnectionFromEnv": true,
	"endpoint": true, "leaseEndpoint": true, "cosmosDBKey": true, "cosmosDBKeyFromEnv": true, "leaseCosmosDBKey": true, "leaseCosmosDBKeyFromEnv": true,
	"changeFeedLagThreshold": true, "activationChangeFeedLagThreshold": true, "maxActiveLeasesPerReplica": true, "enableHighAvailability": true,
}

// restOfMetadata says what was not carried over.
func (c *converter) restOfMetadata(t trigger) {
	for _, m := range t.metadata.members() {
		known, ok := equivalent(m.name)
		switch {
		case t.external && (m.name == "changeFeedLagThreshold" || m.name == "activationChangeFeedLagThreshold"):
			c.remark(m.value, "the external scaler does not read it: it asks for one replica for each partition with lag, and so does the entry")
		case carried[m.name], m.name == "clientId" && t.external:
		case m.name == "cosmosDBResourceURL" && strings.EqualFold(t.metadata.get("cloud").text(), "Private"):
		case m.name == "cloud" && (strings.EqualFold(m.value.text(), "AzurePublicCloud") || strings.EqualFold(m.value.text(), "Private")):
		case m.name == "lagThreshold" || m.name == "activationLagThreshold":
			c.remark(m.value, "no release of KEDA reads it; %s", known)
		case ok:
			c.remark(m.value, "%s", known)
		case t.external:
			c.remark(m.value, "is for the way to the external scaler; there is nothing to write for it")
		default:
			c.remark(m.value, "KEDA's scaler does not read it, and nothing is to be written for it")
		}
	}
}

// floor is the entry of schedules for a cron trigger.
func floor(v value) *yaml.Node {
	m := v.get("metadata")
	made := object()
	for _, field := range []string{"timezone", "start", "end"} {
		if text := m.get(field).text(); text != "" {
			made.Content = append(made.Content, object(field, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(text)}).Content...)
		}
	}
	if n := m.get("desiredReplicas").text(); n != "" {
		made.Content = append(made.Content, object("desiredReplicas", plain(n)).Content...)
	}
	return onOneLine(made)
}

// every is a schedule that fires each so many seconds, or, where there is none, the next more often;
// got is how often it does.
func every(seconds int) (schedule string, got int) {
	for got = min(seconds, 24*60*60); got > 1; got-- {
		switch minutes, hours := got/60, got/3600; {
		case got < 60 && 60%got == 0:
			return "*/" + strconv.Itoa(got) + " * * * * *", got
		case got == 60:
			return "0 * * * * *", got
		case got%60 == 0 && minutes < 60 && 60%minutes == 0:
			return "0 */" + strconv.Itoa(minutes) + " * * * *", got
		case got == 3600:
			return "0 0 * * * *", got
		case got%3600 == 0 && hours < 24 && 24%hours == 0:
			return "0 0 */" + strconv.Itoa(hours) + " * * *", got
		case got == 24*60*60:
			return "0 0 0 * * *", got
		}
	}
	return "* * * * * *", 1
}
