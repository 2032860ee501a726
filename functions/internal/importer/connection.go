package importer

import (
	"fmt"
	"path"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// objectKey names a Kubernetes object; namespace is "" if the file does not say it.
type objectKey struct{ kind, namespace, name string }

// authentication is a TriggerAuthentication or a ClusterTriggerAuthentication
// (https://keda.sh/docs/latest/concepts/authentication/).
type authentication struct {
	parameters map[string]source
	identity   *yamltree.Node // its podIdentity
}

// source is where KEDA finds the value of a parameter.
type source struct {
	at      *yamltree.Node
	what    string // such as "key connection of Secret shop/cosmos"
	id      string // of equal sources
	wanted  string // the name of its setting, if that is free
	env     bool   // what is a variable of the scaled workload
	literal string // the value, if it is in the trigger itself
}

// authentication keeps one, for the triggers that refer to it.
func (k *keda) authentication(kind string, v *yamltree.Node) {
	key := objectKey{kind, v.Get("metadata", "namespace").Text(), v.Get("metadata", "name").Text()}
	spec := v.Get("spec")
	a := authentication{parameters: map[string]source{}, identity: spec.Get("podIdentity")}
	for _, ref := range []struct{ field, kind string }{{"secretTargetRef", "Secret"}, {"configMapTargetRef", "ConfigMap"}} {
		for _, item := range spec.Get(ref.field).Items {
			name, entry := item.Get("name").Text(), item.Get("key").Text()
			what := fmt.Sprintf("key %s of %s %s", yamltree.QuoteName(entry), ref.kind, yamltree.QuoteName(path.Join(key.namespace, name)))
			if kind == "ClusterTriggerAuthentication" {
				what += " in KEDA's namespace"
			}
			a.parameters[item.Get("parameter").Text()] = source{at: item, what: what, id: what, wanted: settingName(name, entry)}
		}
	}
	for _, item := range spec.Get("env").Items {
		a.parameters[item.Get("parameter").Text()] = fromEnvironment(item, item.Get("name").Text())
	}
	k.rest(spec.Fields, "fill in by hand: "+instead("authenticationRef"), "secretTargetRef", "configMapTargetRef", "env", "podIdentity")
	k.authentications[key] = a
}

// fromEnvironment is a variable of the scaled workload. A text that cannot be the name of one is
// taken for its value.
func fromEnvironment(at *yamltree.Node, name string) source {
	if !settingForm.MatchString(name) {
		return literal(at, name)
	}
	return source{at: at, what: name, id: "env " + name, wanted: name, env: true}
}

func literal(at *yamltree.Node, value string) source {
	return source{at: at, id: "literal " + value, wanted: "COSMOS", literal: value}
}

// referred returns the authentication that a trigger refers to.
func (k *keda) referred(t *yamltree.Node, namespace string) (a authentication, found bool) {
	ref := t.Get("authenticationRef")
	key := objectKey{"TriggerAuthentication", namespace, ref.Get("name").Text()}
	if ref.Get("kind").Text() == "ClusterTriggerAuthentication" {
		key.kind, key.namespace = "ClusterTriggerAuthentication", ""
	}
	if a, found = k.authentications[key]; found {
		return a, true
	}
	return authentication{identity: t.Get("podIdentity")}, false
}

// source finds a parameter as KEDA does: in the authentication, then in the environment of the
// workload, then in the trigger.
func (t trigger) source(parameter string) (source, bool) {
	if s, ok := t.authentication.parameters[parameter]; ok {
		return s, true
	}
	if v := t.metadata.Get(parameter + "FromEnv"); v.Present() {
		return fromEnvironment(v, v.Text()), true
	}
	v := t.metadata.Get(parameter)
	return literal(v, v.Text()), v.Present()
}

// need is the setting for the value of a source.
func (t trigger) need(suffix, what string, s source) need {
	switch {
	case s.env:
		return need{suffix: suffix, what: what + ", that of the variable " + s.what + " of", from: []string{t.workload}}
	case s.literal != "":
		return need{suffix: suffix, what: what}
	}
	return need{suffix: suffix, what: what + ", that of " + s.what}
}

// connection returns the name of the setting for an account, and its place in the trigger; "" for
// leases in the account of the monitored container. prefix is "" or "lease".
func (k *keda) connection(t trigger, prefix string) (name string, at *yamltree.Node) {
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
		return k.literalConnection(connection), connection.at
	case byString:
		return k.account(connection.id, connection.wanted, t.need("", "a connection string", connection)), connection.at
	case byEndpoint:
		return k.endpoint(t, parameter("cosmosDBKey"), endpoint), endpoint.at
	case prefix != "":
		return "", nil
	}
	ref := t.Get("authenticationRef", "name").Text()
	if ref == "" {
		k.remark(t.Node, "says neither connectionFromEnv nor endpoint; make the setting that is listed as the application connects")
	}
	return k.account("unknown "+ref, settingName(ref),
		need{what: "a connection string, or the endpoint in the same name with __accountEndpoint behind it, for the account of", from: []string{t.workload}}), t.Node
}

// literalConnection is the setting for a connection string in the trigger itself. Its name has that
// of the account, and nothing else of the string.
func (k *keda) literalConnection(s source) string {
	_, wanted, err := accountOf("", s.literal)
	if err != nil {
		wanted = s.wanted
	}
	name := k.account(s.id, wanted, need{what: "the connection string that stands in the trigger"})
	k.remark(s.at, "this connection string is not repeated: put it into the setting %s, and change its key if others can read this file", name)
	return name
}

// endpoint is the connection for an endpoint with a key or an identity.
func (k *keda) endpoint(t trigger, keyParameter string, endpoint source) string {
	id, wanted := "endpoint "+endpoint.id, endpoint.wanted
	at := t.need("__accountEndpoint", "the endpoint of the account", endpoint)
	if endpoint.literal != "" {
		if account, name, err := accountOf("__accountEndpoint", endpoint.literal); err == nil {
			at.value, wanted = account.Endpoint, name
		} else {
			k.remark(endpoint.at, "is no address of an account; put https://ACCOUNT.documents.azure.com/ into the setting that is listed")
		}
	}
	if key, ok := t.source(keyParameter); ok {
		if key.literal != "" {
			k.remark(key.at, "this key, which KEDA does not read, is not repeated: put it into the setting that is listed")
		}
		return k.account(id+" key "+key.id, wanted, at, t.need("__accountKey", "a key of the account", key))
	}
	identity, needs := k.identity(t)
	return k.account(id+identity, wanted, append([]need{at}, needs...)...)
}

// principal returns the settings for the service principal of a trigger, if it has one.
func (k *keda) principal(t trigger) (id string, needs []need) {
	for _, parameter := range []struct{ name, what string }{
		{"tenantId", "the tenant of the service principal"}, {"clientId", "the client id of the service principal"}, {"clientSecret", "a secret of the service principal"},
	} {
		s, ok := t.source(parameter.name)
		if !ok {
			continue
		}
		n := t.need("__"+parameter.name, parameter.what, s)
		switch {
		case parameter.name != "clientSecret":
			n.value = s.literal
		case s.literal != "":
			k.remark(s.at, "this secret is not repeated: put it into the setting that is listed, and replace it if others can read this file")
		}
		id, needs = id+" "+s.id, append(needs, n)
	}
	return id, needs
}

// identity returns the settings for the identity that signs in.
func (k *keda) identity(t trigger) (id string, needs []need) {
	pod := t.authentication.identity
	provider := pod.Get("provider").Text()
	client, tenant := pod.Get("identityId"), pod.Get("identityTenantId")
	switch {
	case provider == "azure-workload":
		k.remark(pod, "feedscale signs in with its own identity, not with KEDA's: give it the role Cosmos DB Built-in Data Reader (https://github.com/feedscale/feedscale/blob/main/docs/permissions.md)")
	case pod.Present() && provider != "none" && provider != "":
		k.remark(pod, "fill in by hand: %s", instead("podIdentity"))
	case t.external:
		client = t.metadata.Get("clientId")
	default:
		return k.principal(t)
	}
	if host := pod.Get("identityAuthorityHost"); host.Present() {
		k.remark(host, "%s", instead("activeDirectoryEndpoint"))
	}
	add := func(suffix, value, what string) {
		if value != "" {
			id += " " + value
			needs = append(needs, need{suffix: suffix, value: value, what: what})
		}
	}
	add("__clientId", client.Text(), "the client id of the identity, where it is feedscale's, too")
	add("__tenantId", tenant.Text(), "the tenant of the identity")
	return id, needs
}
