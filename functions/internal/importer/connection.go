package importer

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// authentication is a TriggerAuthentication or a ClusterTriggerAuthentication
// (https://keda.sh/docs/latest/concepts/authentication/).
type authentication struct {
	parameters map[string]source
	identity   *yamltree.Node // its podIdentity
}

// source is where KEDA finds the value of a parameter.
type source struct {
	at      *yamltree.Node
	literal string // the value, if it is in the trigger itself
	what    string // else where it is, such as "key connection of Secret shop/cosmos"
	wanted  string // the name of its setting, if that is free
}

// id is the same for equal values.
func (s source) id() string { return cmp.Or(s.what, s.literal) }

// setting is the setting for the value.
func (s source) setting(suffix, what string) Setting {
	if s.what != "" {
		what += ", that of " + s.what
	}
	return Setting{Name: suffix, What: what}
}

// variable is a variable of the workload, as the what of a source.
func variable(name string) string {
	return "the variable " + name + ", which has to be the same in every workload"
}

// authentication keeps one, for the triggers that refer to it.
func (k *keda) authentication(kind string, v *yamltree.Node) {
	spec, namespace := v.Get("spec"), v.Get("metadata", "namespace").Text()
	a := authentication{parameters: map[string]source{}, identity: spec.Get("podIdentity")}
	for _, ref := range []struct{ field, kind string }{{"secretTargetRef", "Secret"}, {"configMapTargetRef", "ConfigMap"}} {
		for _, item := range spec.Get(ref.field).Items {
			name, entry := item.Get("name").Text(), item.Get("key").Text()
			what := fmt.Sprintf("key %s of %s %s", yamltree.QuoteName(entry), ref.kind, yamltree.QuoteName(path.Join(namespace, name)))
			if kind == "ClusterTriggerAuthentication" {
				what += " in KEDA's namespace"
			}
			a.parameters[item.Get("parameter").Text()] = source{at: item, what: what, wanted: settingName(name, entry)}
		}
	}
	for _, item := range spec.Get("env").Items {
		a.parameters[item.Get("parameter").Text()] = fromEnvironment(item, item.Get("name").Text())
	}
	k.rest(spec.Fields, "fill in by hand: "+instead("authenticationRef"), "secretTargetRef", "configMapTargetRef", "env", "podIdentity")
	k.authentications[[3]string{kind, namespace, v.Get("metadata", "name").Text()}] = a
}

// fromEnvironment is a variable of the scaled workload. A text that cannot be the name of one is
// taken for its value.
func fromEnvironment(at *yamltree.Node, name string) source {
	if !config.IsSettingName(name) {
		return literal(at, name)
	}
	return source{at: at, what: variable(name), wanted: name}
}

func literal(at *yamltree.Node, value string) source {
	return source{at: at, literal: value, wanted: "COSMOS"}
}

// referred returns the authentication that a trigger refers to.
func (k *keda) referred(t *yamltree.Node, namespace string) authentication {
	ref := t.Get("authenticationRef")
	kind := cmp.Or(ref.Get("kind").Text(), "TriggerAuthentication")
	if kind == "ClusterTriggerAuthentication" {
		namespace = ""
	}
	a, found := k.authentications[[3]string{kind, namespace, ref.Get("name").Text()}]
	switch {
	case found:
		return a
	case ref.Get("name").Text() != "":
		k.remark(ref, "no file has this object, which says how KEDA signs in; add its file to the import, or make the settings that are listed as you know them")
	}
	return authentication{identity: t.Get("podIdentity")}
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

// connection returns the name of the setting for an account, and its place; "" for leases in the
// monitored account. It takes the names of the three parameters that say how to connect.
func (k *keda) connection(t trigger, stringName, endpointName, keyName string) (name string, at *yamltree.Node) {
	connection, byString := t.source(stringName)
	endpoint, byEndpoint := t.source(endpointName)
	switch {
	case byString && connection.literal != "":
		name = k.account(connection.id(), connection.wanted, Setting{What: "the connection string that stands in the trigger"})
		k.remark(connection.at, "this connection string is not repeated: put it into the setting %s, and change its key if others can read this file", name)
		return name, connection.at
	case byString:
		return k.account(connection.id(), connection.wanted, connection.setting("", "a connection string")), connection.at
	case byEndpoint:
		return k.endpoint(t, keyName, endpoint), endpoint.at
	case stringName != "connection":
		return "", nil
	}
	ref := t.Get("authenticationRef", "name").Text()
	if ref == "" {
		k.remark(t.Node, "says neither connectionFromEnv nor endpoint; make the setting that is listed as the application connects")
	}
	return k.account("unknown "+ref, settingName(ref),
		Setting{What: "a connection string, or the endpoint in the same name with __accountEndpoint behind it"}), t.Node
}

// endpoint is the connection for an endpoint with a key or an identity.
func (k *keda) endpoint(t trigger, keyParameter string, endpoint source) string {
	id, wanted := "endpoint "+endpoint.id(), endpoint.wanted
	address := endpoint.setting("__accountEndpoint", "the endpoint of the account")
	if endpoint.literal != "" {
		account, err := config.ParseCosmosConnection(func(name string) (string, bool) { return endpoint.literal, name == "X__accountEndpoint" }, "X")
		if err != nil {
			k.remark(endpoint.at, "is no address of an account; put https://ACCOUNT.documents.azure.com/ into the setting that is listed")
		} else {
			name, _, _ := strings.Cut(account.Host, ".")
			address.Value, wanted = account.Endpoint, settingName("COSMOS", name)
		}
	}
	if key, ok := t.source(keyParameter); ok {
		if key.literal != "" {
			k.remark(key.at, "this key, which KEDA does not read, is not repeated: put it into the setting that is listed")
		}
		return k.account(id+" key "+key.id(), wanted, address, key.setting("__accountKey", "a key of the account"))
	}
	identity, needs := k.identity(t)
	return k.account(id+identity, wanted, append([]Setting{address}, needs...)...)
}

// identity returns the settings for the identity or service principal that signs in.
func (k *keda) identity(t trigger) (id string, needs []Setting) {
	find, pod := t.source, t.authentication.identity
	if provider := pod.Get("provider").Text(); provider != "" && provider != "none" {
		find = func(parameter string) (source, bool) {
			v := pod.Get(map[string]string{"tenantId": "identityTenantId", "clientId": "identityId"}[parameter])
			return literal(v, v.Text()), v.Text() != ""
		}
		if provider == "azure-workload" {
			k.remark(pod, "feedscale signs in with its own identity, not with KEDA's: give it the role Cosmos DB Built-in Data Reader (https://github.com/feedscale/feedscale/blob/main/docs/permissions.md)")
		} else {
			k.remark(pod, "fill in by hand: %s", instead("podIdentity"))
		}
	}
	if host := pod.Get("identityAuthorityHost"); host.Present() {
		k.remark(host, "%s", instead("activeDirectoryEndpoint"))
	}
	for _, parameter := range []struct{ name, what string }{
		{"tenantId", "the tenant of the identity"}, {"clientId", "the client id of the identity"}, {"clientSecret", "a secret of the identity"},
	} {
		s, ok := find(parameter.name)
		if !ok {
			continue
		}
		n := s.setting("__"+parameter.name, parameter.what)
		switch {
		case parameter.name != "clientSecret":
			n.Value = s.literal
		case s.literal != "":
			k.remark(s.at, "this secret is not repeated: put it into the setting that is listed, and replace it if others can read this file")
		}
		id, needs = id+" "+s.id(), append(needs, n)
	}
	return id, needs
}
