package imports

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
)

// read sorts what a file holds by its kind.
func (c *converter) read(f File) {
	all, err := documents(f)
	if mistakes, ok := errors.AsType[config.Mistakes](err); ok {
		c.mistakes = append(c.mistakes, mistakes...)
		return
	}
	if len(all) == 0 {
		c.mistake(value{file: f.Name}, "is empty; "+allowed)
	}
	used, foreign := false, value{}
	for _, document := range all {
		switch {
		case document.get("apiVersion").present() && document.get("kind").present():
			if c.object(document) {
				used = true
			} else if foreign.node == nil {
				foreign = document
			}
		case document.getFold("bindings").isList():
			c.function(document, strings.Trim(path.Base(folder(f.Name)), "."), path.Dir(folder(f.Name)))
			used = true
		case isFunctionsMetadata(document):
			for _, function := range document.items() {
				c.function(function, function.getFold("name").text(), folder(f.Name))
			}
			used = true
		case base(f.Name) == "host.json" || document.getFold("extensionBundle").present() || document.getFold("extensions").isObject():
			c.app(folder(f.Name)).host = document
			used = true
		case document.getFold("Values").isObject():
			c.app(folder(f.Name)).local = document
			used = true
		case document.get("processors").isList():
			c.mistake(document, "is a processors file already; feedscale check looks at it")
			used = true
		default:
			c.mistake(document, "is nothing that can be imported; "+allowed)
			used = true
		}
	}
	if !used && foreign.node != nil {
		c.remark(foreign, "there is no object of KEDA in this file; it is passed over")
	}
}

const allowed = "allowed are ScaledObjects and TriggerAuthentications of KEDA, and function.json, functions.metadata, host.json and local.settings.json of Azure Functions"

// object keeps a Kubernetes object, or those of a list of them. It reports whether any is KEDA's.
func (c *converter) object(v value) (used bool) {
	switch kind := v.get("kind").text(); kind {
	case "ScaledObject":
		c.scaledObjects = append(c.scaledObjects, v)
	case "TriggerAuthentication", "ClusterTriggerAuthentication":
		c.authentication(kind, v)
	case "ScaledJob":
		c.remark(v, "a ScaledJob starts a job for each piece of work; a change feed processor runs on, and owns leases: run it in a Deployment, and give that a ScaledObject")
	default:
		if strings.HasSuffix(kind, "List") {
			for _, item := range v.get("items").items() {
				used = c.object(item) || used
			}
		}
		return used
	}
	return true
}

// isFunctionsMetadata reports whether a document is the functions.metadata that a build of a .NET
// isolated app makes in place of a function.json for each function.
func isFunctionsMetadata(v value) bool {
	items := v.items()
	return len(items) > 0 && items[0].getFold("bindings").isList()
}

// folder is the folder that a file is in, as it was named, with slashes.
func folder(name string) string { return path.Dir(filepath.ToSlash(name)) }

func base(name string) string { return path.Base(filepath.ToSlash(name)) }
