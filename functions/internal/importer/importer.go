// Package importer makes a processors file from KEDA's ScaledObjects with their
// TriggerAuthentications, and from the function.json of Azure Functions (docs/import.md). A remark
// says, by line, what it does not carry over, and what is wrong with the file that it makes.
//
// It reads no file and no environment, imports no package of KEDA or Kubernetes, and repeats no
// secret.
//
// Start with Convert. keda.go and functions.go have the fields.
package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
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
	Remarks    yamltree.Mistakes // what was not carried over, or is wrong in Processors, by file and line
	Settings   []Setting         // that the connections still need, by name
}

// Convert makes a processors file from files. lookup finds existing settings, which Result.Settings
// leaves out. The error is a yamltree.Mistakes with all that cannot be read.
func Convert(files []File, lookup func(string) (string, bool)) (Result, error) {
	out := &output{names: map[string]bool{}, lookup: lookup, connections: map[string]string{}, missing: map[string]Setting{}}
	k := keda{output: out, authentications: map[[3]string]authentication{}}
	a := apps{output: out, triggers: map[string][]functionTrigger{}}
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
	if len(out.processors) == 0 {
		out.remarks.Add(yamltree.Mistake{Text: "there is nothing to import: no file has a ScaledObject with a trigger for Cosmos DB, or a function with a cosmosDBTrigger"})
		return Result{}, out.remarks.Err()
	}
	text, err := out.render()
	if err != nil {
		return Result{}, err
	}
	text, mistakes = commented(text)
	remarks, _ := append(out.remarks, mistakes...).Err().(yamltree.Mistakes) // without repeats: the members of a group share fields
	missing := slices.SortedFunc(maps.Values(out.missing), func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return Result{Processors: text, Remarks: remarks, Settings: missing}, nil
}

// commented replaces the fields of a processors file that config refuses by comments, and returns
// its mistakes. It repeats, since one mistake may hide another.
func commented(text []byte) (_ []byte, all yamltree.Mistakes) {
	everySetting := func(name string) (string, bool) { // each to an account of its own
		return fmt.Sprintf("AccountEndpoint=https://a%x.documents.azure.com/;AccountKey=AAAA", name), !strings.HasSuffix(name, "tokenScope")
	}
	lines := strings.Split(string(text), "\n")
	for done := false; !done; {
		done = true
		_, err := config.Load("the processors file", []byte(strings.Join(lines, "\n")), everySetting)
		mistakes, _ := err.(yamltree.Mistakes)
		for _, m := range mistakes {
			if i := m.Line - 1; i >= 0 && strings.HasPrefix(lines[i], "  ") && !strings.HasPrefix(lines[i], "  #") {
				lines[i], done = "  # "+m.Field+": "+m.Text, false
			}
		}
		all = append(all, mistakes...)
	}
	return []byte(strings.Join(lines, "\n")), all
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

const importable = "allowed are ScaledObjects and TriggerAuthentications of KEDA, and function.json, functions.metadata and host.json of Azure Functions"

// read sorts the documents of a file by their kind.
func read(f File, k *keda, a *apps) yamltree.Mistakes {
	folder, base := path.Split(filepath.ToSlash(f.Name))
	folder = path.Clean(folder)
	if base == "host.json" || base == "local.settings.json" {
		return nil // they have nothing that is carried over
	}
	all, mistakes := yamltree.Parse(f.Name, f.Text)
	if len(all) == 0 && len(mistakes) == 0 {
		mistakes.Add(yamltree.Mistake{File: f.Name, Text: "is empty; " + importable})
	}
	for _, document := range all {
		switch {
		case document.Get("apiVersion").Present() && document.Get("kind").Present():
			k.object(document)
		case document.Get("bindings").IsList():
			a.function(document, strings.Trim(path.Base(folder), "."), path.Dir(folder))
		case len(document.Items) > 0 && document.Items[0].Get("bindings").IsList(): // functions.metadata
			for _, function := range document.Items {
				a.function(function, function.Get("name").Text(), folder)
			}
		default:
			mistakes.Add(document.Mistake("cannot be imported; " + importable))
		}
	}
	return mistakes
}
