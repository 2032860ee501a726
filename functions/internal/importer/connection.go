package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
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
	for _, ref := range []struct{ field, kind string }{{"secretTargetRef", "Secret"}, {"configMapTargetRef", "ConfigMap"}} {
		for _, item := range spec.Get(ref.field).Items {
			name, entry := item.Get("name").Text(), item.Get("key").Text()
			what := fmt.Sprintf("key %s of %s %s", yamltree.QuoteName(entry), ref.kind, yamltree.QuoteName(path.Join(namespace, name)))
			if kind == "ClusterTriggerAuthentication" {
				what += " in KEDA's namespace"
			}
			a[item.Get("parameter").Text()] = source{at: item, what: what, wanted: settingName(name, entry)}
		}
	}
	for _, item := range spec.Get("env").Items {
		a[item.Get("parameter").Text()] = fromEnvironment(item, item.Get("name").Text())
	}
	switch pod := spec.Get("podIdentity"); pod.Get("provider").Text() {
	case "", "none":
	case "azure-workload":
		k.remark(pod, "feedscale signs in with its own identity, not with KEDA's: give it the role Cosmos DB Built-in Data Reader (https://github.com/feedscale/feedscale/blob/main/docs/permissions.md)")
		for parameter, v := range map[string]*yamltree.Node{"tenantId": pod.Get("identityTenantId"), "clientId": pod.Get("identityId")} {
			if v.Text() != "" {
				a[parameter] = literal(v, v.Text())
			}
		}
		if host := pod.Get("identityAuthorityHost"); host.Present() {
			k.remark(host, "%s", instead("activeDirectoryEndpoint"))
		}
	default:
		k.remark(pod, "fill in by hand: %s", instead("podIdentity"))
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
	return literal(v, v.Text()), v.Present()
}

// connection returns the name of the setting for an account, and its place; "" for leases in the
// monitored account. It takes the names of the three parameters that say how to connect.
func (k *keda) connection(t trigger, stringName, endpointName, keyName string) (name string, at *yamltree.Node) {
	by := func(parameter string) bool { _, ok := t.source(parameter); return ok }
	var parameters []string
	switch {
	case by(stringName):
		parameters = []string{stringName}
	case by(endpointName) && by(keyName):
		parameters = []string{endpointName, keyName}
	case by(endpointName):
		parameters = []string{endpointName, "tenantId", "clientId", "clientSecret"}
	case stringName != "connection":
		return "", nil
	default:
		ref := t.Get("authenticationRef", "name").Text()
		if ref == "" {
			k.remark(t.Node, "says neither connectionFromEnv nor endpoint; make the setting that is listed as the application connects")
		}
		return k.account("unknown "+ref, settingName(ref),
			Setting{What: "a connection string, or the endpoint in the same name with __accountEndpoint behind it"}), t.Node
	}
	account, _ := t.source(parameters[0])
	id, wanted, needs := "", account.wanted, []Setting(nil)
	for _, p := range []struct{ name, suffix, what string }{
		{stringName, "", "a connection string"}, {endpointName, "__accountEndpoint", "the endpoint of the account"},
		{keyName, "__accountKey", "a key of the account"}, {"tenantId", "__tenantId", "the tenant of the identity"},
		{"clientId", "__clientId", "the client id of the identity"}, {"clientSecret", "__clientSecret", "a secret of the identity"},
	} {
		s, found := t.source(p.name)
		if !found || !slices.Contains(parameters, p.name) {
			continue
		}
		need := Setting{Name: p.suffix, Value: s.literal, What: p.what}
		switch {
		case s.what != "":
			need.What += ", that of " + s.what
		case p.name == endpointName:
			need.Value, wanted = k.endpoint(s)
		case p.name != "tenantId" && p.name != "clientId":
			need.Value, need.What = "", fmt.Sprintf("%s, that of %s:%d", need.What, s.at.File, s.at.Line)
			k.remark(s.at, "this secret is not repeated: put it into the setting that is listed, and replace it if others can read this file")
		}
		id, needs = id+p.suffix+s.what+s.literal, append(needs, need)
	}
	return k.account(id, wanted, needs...), account.at
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
