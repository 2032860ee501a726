package importer

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// authentication is a TriggerAuthentication or a ClusterTriggerAuthentication: the sources of its
// parameters (https://keda.sh/docs/latest/concepts/authentication/).
type authentication map[string]source

// source is where KEDA finds the value of a parameter.
type source struct {
	at      *yamltree.Node
	literal string // the value, if it is in the trigger itself
	what    string // else where it is, such as "key connection of Secret shop/cosmos"
	wanted  string // the name of its setting, if that is free
}

// variable is a variable of the workload, as the what of a source.
func variable(name string) string {
	return "the variable " + name + ", which has to be the same in every workload"
}

// authentication keeps one, for the triggers that refer to it.
func (k *keda) authentication(kind string, v *yamltree.Node) {
	spec, namespace := v.Get("spec"), v.Get("metadata", "namespace").Text()
	a := authentication{}
	for field, kind := range map[string]string{"secretTargetRef": "Secret", "configMapTargetRef": "ConfigMap"} {
		for _, item := range spec.Get(field).Items {
			name, entry := item.Get("name").Text(), item.Get("key").Text()
			what := fmt.Sprintf("key %s of %s %s", yamltree.QuoteName(entry), kind, yamltree.QuoteName(path.Join(namespace, name)))
			a[item.Get("parameter").Text()] = source{at: item, what: what, wanted: settingName(name, entry)}
		}
	}
	for _, item := range spec.Get("env").Items {
		a[item.Get("parameter").Text()] = fromEnvironment(item, item.Get("name").Text())
	}
	if pod := spec.Get("podIdentity"); pod.Present() && pod.Get("provider").Text() != "none" {
		k.remark(pod, "feedscale signs in with its own identity, not with KEDA's: give it the role Cosmos DB Built-in Data Reader (https://github.com/feedscale/feedscale/blob/main/docs/permissions.md)")
	}
	k.rest(spec.Fields, "fill in by hand: "+instead("authenticationRef"), "secretTargetRef", "configMapTargetRef", "env", "podIdentity")
	k.authentications[[3]string{kind, namespace, v.Get("metadata", "name").Text()}] = a
}

// fromEnvironment is a variable of the scaled workload. A text that cannot be the name of one is
// taken for its value.
func fromEnvironment(at *yamltree.Node, name string) source {
	if !config.IsSettingName(name) {
		return source{at: at, literal: name, wanted: "COSMOS"}
	}
	return source{at: at, what: variable(name), wanted: name}
}

// referred returns the authentication that a trigger refers to.
func (k *keda) referred(t *yamltree.Node, namespace string) authentication {
	ref := t.Get("authenticationRef")
	kind := cmp.Or(ref.Get("kind").Text(), "TriggerAuthentication")
	if kind == "ClusterTriggerAuthentication" {
		namespace = ""
	}
	a, found := k.authentications[[3]string{kind, namespace, ref.Get("name").Text()}]
	if !found && ref.Get("name").Text() != "" {
		k.remark(ref, "no file has this object, which says how KEDA signs in; add its file to the import, or make the settings that are listed as you know them")
	}
	return a
}

// source finds a parameter as KEDA does: in the authentication, then in the environment of the
// workload, then in the trigger.
func (t trigger) source(parameter string) (source, bool) {
	if s, ok := t.authentication[parameter]; ok {
		return s, true
	}
	if v := t.metadata.Get(parameter + "FromEnv"); v.Present() {
		return fromEnvironment(v, v.Text()), true
	}
	v := t.metadata.Get(parameter)
	return source{at: v, literal: v.Text(), wanted: "COSMOS"}, v.Present()
}

// connectionFields are the fields of a trigger that say how to connect.
var connectionFields = []string{
	"connection", "connectionFromEnv", "leaseConnection", "leaseConnectionFromEnv",
	"endpoint", "leaseEndpoint", "cosmosDBKey", "cosmosDBKeyFromEnv", "leaseCosmosDBKey", "leaseCosmosDBKeyFromEnv",
	"tenantId", "tenantIdFromEnv", "clientId", "clientIdFromEnv", "clientSecret", "clientSecretFromEnv",
}

// connection returns the name of the setting for an account, "" for leases in the monitored account.
// It takes the names of the parameters that say how to connect.
func (k *keda) connection(t trigger, whole, endpoint, key string) string {
	type parameter struct {
		name, suffix, what string
		secret             bool
	}
	parameters := []parameter{{whole, "", "a connection string", true}}
	account, found := t.source(whole)
	if !found {
		account, found = t.source(endpoint)
		parameters = []parameter{
			{endpoint, "__accountEndpoint", "the endpoint of the account", false}, {key, "__accountKey", "a key of the account", true},
			{"tenantId", "__tenantId", "the tenant of the identity", false}, {"clientId", "__clientId", "the client id of the identity", false},
			{"clientSecret", "__clientSecret", "a secret of the identity", true},
		}
	}
	switch {
	case !found && whole == "leaseConnection":
		return ""
	case !found:
		ref := t.Get("authenticationRef", "name").Text()
		if ref == "" {
			k.remark(t.Node, "says neither connectionFromEnv nor endpoint; make the setting that is listed as the application connects")
		}
		return k.account("unknown "+ref, settingName(ref),
			Setting{What: "a connection string, or the endpoint in the same name with __accountEndpoint behind it"})
	}
	id, wanted, needs := "", account.wanted, []Setting(nil)
	for _, p := range parameters {
		s, found := t.source(p.name)
		if !found {
			continue
		}
		need := Setting{Name: p.suffix, Value: s.literal, What: p.what}
		switch {
		case s.what != "":
			need.What += ", that of " + s.what
		case p.secret:
			need.Value, need.What = "", fmt.Sprintf("%s, that of %s:%d", p.what, s.at.File, s.at.Line)
			k.remark(s.at, "this secret is not repeated: put it into the setting that is listed, and replace it if others can read this file")
		case p.name == endpoint:
			need.Value, wanted = k.endpoint(s)
		}
		id, needs = id+p.suffix+s.what+s.literal, append(needs, need)
	}
	return k.account(id, wanted, needs...)
}

// endpoint returns the endpoint of an account in a trigger, and a name for its setting.
func (k *keda) endpoint(s source) (value, wanted string) {
	account, err := config.ParseCosmosConnection(func(name string) (string, bool) { return s.literal, name == "X__accountEndpoint" }, "X")
	if err != nil {
		k.remark(s.at, "is no address of an account; put https://ACCOUNT.documents.azure.com/ into the setting that is listed")
		return "", s.wanted
	}
	name, _, _ := strings.Cut(account.Host, ".")
	return account.Endpoint, settingName("COSMOS", name)
}
