// Package importer makes a processors file from KEDA's ScaledObjects with their
// TriggerAuthentications, and from the function.json of Azure Functions (docs/import.md). A remark
// says, by line, what it does not carry over.
//
// It reads no file and no environment, imports no package of KEDA or Kubernetes, and repeats no
// secret. A field that package config refuses is left out, with a remark.
//
// Start with Convert. keda.go, trigger.go and functions.go have the fields.
package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// File is one of the files to import.
type File struct {
	Name string // a path; the folder of a function.json is the name of its function
	Text []byte
}

// Result is the outcome of an import.
type Result struct {
	Processors []byte            // a processors file
	Remarks    yamltree.Mistakes // what was not carried over, or changed, by file and line
	Settings   []Setting         // that the connections still need, by name
}

// Convert makes a processors file from files. lookup finds existing settings: their values replace
// %NAME%, and Result.Settings leaves them out. The error is a yamltree.Mistakes with all that
// cannot be read.
func Convert(files []File, lookup func(string) (string, bool)) (Result, error) {
	out := &output{names: map[string]bool{}, lookup: lookup, connections: map[string]string{}, missing: map[string]Setting{}}
	k := keda{output: out, authentications: map[[3]string]authentication{}}
	a := apps{output: out, local: map[string]yamltree.Node{}, triggers: map[string][]functionTrigger{}}
	var mistakes yamltree.Mistakes
	for _, f := range files {
		mistakes = append(mistakes, read(f, &k, &a)...)
	}
	if err := mistakes.Err(); err != nil {
		return Result{}, err
	}
	for _, object := range k.objects {
		k.scaledObject(object)
	}
	a.functions()
	if err := out.settle(); err != nil {
		return Result{}, err
	}
	sorted, _ := out.remarks.Err().(yamltree.Mistakes) // without repeats: the members of a group share fields
	if len(out.processors) == 0 {
		return Result{}, append(sorted, yamltree.Mistake{Text: "there is nothing to import: no file has a ScaledObject with a trigger for Cosmos DB, or a function with a cosmosDBTrigger, that could be carried over"})
	}
	missing := slices.SortedFunc(maps.Values(out.missing), func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return Result{Processors: out.render(), Remarks: sorted, Settings: missing}, nil
}

// remark adds a remark, which is one line, whatever the file holds.
func (o *output) remark(at *yamltree.Node, format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	o.remarks.Add(at.Mistake(text))
}

// rest remarks on the fields that were not carried over; otherwise is the text for those that
// config does not know.
func (o *output) rest(fields []*yamltree.Node, otherwise string, carried ...string) {
	for _, f := range fields {
		if !slices.Contains(carried, f.Name) {
			o.remark(f, "%s", cmp.Or(instead(f.Name), otherwise))
		}
	}
}

// instead is what replaces a field of KEDA or Functions; "" if config does not know it.
func instead(field string) string {
	_, text := config.Instead(field)
	return strings.TrimSuffix(text, "; leave it out")
}

const importable = "allowed are ScaledObjects and TriggerAuthentications of KEDA, and function.json, functions.metadata, host.json and local.settings.json of Azure Functions"

// read sorts the documents of a file by their kind.
func read(f File, k *keda, a *apps) yamltree.Mistakes {
	folder, base := path.Split(filepath.ToSlash(f.Name))
	folder = path.Clean(folder)
	if base == "host.json" {
		return nil // it has nothing that feedscale needs
	}
	if path.Ext(base) == ".json" {
		f.Text = withoutComments(f.Text)
	}
	all, mistakes := yamltree.Parse(f.Name, f.Text)
	if len(all) == 0 && len(mistakes) == 0 {
		return yamltree.Mistakes{{File: f.Name, Text: "is empty; " + importable}}
	}
	if before, _, ok := bytes.Cut(f.Text, []byte("{{")); ok && len(mistakes) > 0 {
		return yamltree.Mistakes{{File: f.Name, Line: 1 + bytes.Count(before, []byte("\n")), Text: isTemplate}}
	}
	used := false
	for _, document := range all {
		switch {
		case document.Get("apiVersion").Present() && document.Get("kind").Present():
			if k.object(document) {
				used = true
				mistakes = append(mistakes, templates(document)...)
			}
			continue
		case document.Get("bindings").IsList():
			a.function(document, strings.Trim(path.Base(folder), "."), path.Dir(folder))
		case len(document.Items) > 0 && document.Items[0].Get("bindings").IsList(): // functions.metadata
			for _, function := range document.Items {
				a.function(function, function.Get("name").Text(), folder)
			}
		case document.Get("Values").IsObject():
			if !isTrue(document.Get("IsEncrypted")) {
				a.local[folder] = *document.Get("Values")
			}
		case document.Get("processors").IsList():
			mistakes.Add(document.Mistake("is a processors file already; feedscale check reads it"))
		default:
			mistakes.Add(document.Mistake("cannot be imported; " + importable))
		}
		used = true
	}
	if !used && len(all) > 0 {
		k.remark(all[0], "this file has no object of KEDA; it is skipped")
	}
	return mistakes
}

const isTemplate = `is an unfilled template of Helm ("{{"); import the output of helm template CHART`

// templates returns a mistake for each value that Helm would replace. It is for objects of KEDA
// alone: others, such as alerting rules, may have such texts.
func templates(v *yamltree.Node) (mistakes yamltree.Mistakes) {
	if strings.Contains(v.Text(), "{{") {
		mistakes.Add(v.Mistake(isTemplate))
	}
	for _, inner := range slices.Concat(v.Fields, v.Items) {
		mistakes = append(mistakes, templates(inner)...)
	}
	return mistakes
}

var stringOrComment = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*(?s:.*?)\*/`)

// withoutComments removes the comments that the Functions host allows in JSON. Lines keep their
// numbers.
func withoutComments(text []byte) []byte {
	return stringOrComment.ReplaceAllFunc(text, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return bytes.Repeat([]byte("\n"), bytes.Count(found, []byte("\n")))
	})
}

// everySetting is a lookup with every connection, each to an account of its own.
func everySetting(name string) (string, bool) {
	if strings.HasSuffix(name, "tokenScope") {
		return "", false // a key signs in
	}
	return fmt.Sprintf("AccountEndpoint=https://a%x.documents.azure.com/;AccountKey=AAAA", name), true
}
