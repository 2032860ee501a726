package imports

import (
	"fmt"
	"strings"
)

// objectKey names a Kubernetes object; namespace is "" where it is not said.
type objectKey struct{ kind, namespace, name string }

// authentication is a TriggerAuthentication or a ClusterTriggerAuthentication
// (https://keda.sh/docs/latest/concepts/authentication/).
type authentication struct {
	at         value
	parameters map[string]source
	identity   value   // its podIdentity
	foreign    []value // ways to sign in that have no equivalent
}

// source is where KEDA finds the value of a parameter.
type source struct {
	at      value
	what    string // "key connection of Secret shop/cosmos"
	id      string // tells it from others
	wanted  string // the name of the setting to make of it
	env     bool   // in the environment of what is scaled, which has what's name
	literal string // in the trigger itself
}

// authentication reads one, for the triggers that refer to it.
func (c *converter) authentication(kind string, v value) {
	key := objectKey{kind, v.get("metadata", "namespace").text(), v.get("metadata", "name").text()}
	spec := v.get("spec")
	a := authentication{at: v, parameters: map[string]source{}, identity: spec.get("podIdentity")}
	in := func(kind, name string) string {
		switch {
		case key.kind == "ClusterTriggerAuthentication":
			return kind + " " + name + " in KEDA's namespace"
		case key.namespace != "":
			return kind + " " + key.namespace + "/" + name
		}
		return kind + " " + name
	}
	add := func(item value, what, name, key string) {
		a.parameters[item.get("parameter").text()] = source{at: item, what: what, id: what, wanted: joined(named(name), named(key))}
	}
	for _, store := range []struct{ field, kind string }{{"secretTargetRef", "Secret"}, {"configMapTargetRef", "ConfigMap"}} {
		for _, item := range spec.get(store.field).items() {
			name, key := item.get("name").text(), item.get("key").text()
			add(item, fmt.Sprintf("key %s of %s", named(key), in(store.kind, named(name))), name, key)
		}
	}
	for _, item := range spec.get("env").items() {
		name := item.get("name").text()
		a.parameters[item.get("parameter").text()] = fromEnvironment(item, name)
	}
	for _, vault := range []struct{ field, what, name string }{
		{"azureKeyVault", "an Azure Key Vault", "name"}, {"hashiCorpVault", "HashiCorp Vault", "path"},
		{"gcpSecretManager", "GCP Secret Manager", "id"}, {"awsSecretManager", "AWS Secrets Manager", "name"},
	} {
		for _, item := range spec.get(vault.field, "secrets").items() {
			name, key := item.get(vault.name).text(), item.get("key").text()
			what := fmt.Sprintf("secret %s of %s", named(name), vault.what)
			if key != "" {
				what = "key " + named(key) + " of " + what
			}
			add(item, what, name, key)
		}
	}
	for _, field := range []string{"filePath", "boundServiceAccountToken", "oauth2", "azureServicePrincipal"} {
		if way := spec.get(field); way.present() {
			a.foreign = append(a.foreign, way)
		}
	}
	c.authentications[key] = a
}

// fromEnvironment is the source for a variable of the environment of what is scaled. What cannot be
// the name of one is taken for its value.
func fromEnvironment(at value, name string) source {
	if !settingForm.MatchString(name) {
		return source{at: at, id: "literal " + name, wanted: "COSMOS", literal: name}
	}
	return source{at: at, what: name, id: "env " + name, wanted: name, env: true}
}

// joined is the name of the setting to make of a key in something that has a name.
func joined(name, key string) string {
	whole, part := settingName(name), settingName(key)
	if key == "" || whole == part || strings.HasSuffix(whole, "_"+part) {
		return whole
	}
	return settingName(name, key)
}

// referred returns the authentication that a trigger refers to. One whose namespace only one of them
// says is taken for it.
func (c *converter) referred(trigger value, namespace string) (a authentication, named, found bool) {
	ref := trigger.get("authenticationRef")
	key := objectKey{ref.get("kind").text(), namespace, ref.get("name").text()}
	if key.name == "" {
		return authentication{}, false, false
	}
	switch key.kind {
	case "ClusterTriggerAuthentication":
		key.namespace = ""
	case "":
		key.kind = "TriggerAuthentication"
	}
	if a, ok := c.authentications[key]; ok {
		return a, true, true
	}
	var candidates []authentication
	for other, a := range c.authentications {
		if other.kind == key.kind && other.name == key.name && (other.namespace == "" || key.namespace == "") {
			candidates = append(candidates, a)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], true, true
	}
	return authentication{}, true, false
}
