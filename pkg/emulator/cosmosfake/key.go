package cosmosfake

import (
	"encoding/json"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// keyDefinition says which properties of a document make its partition key. More than one path is a
// hierarchical key.
type keyDefinition struct {
	paths []string
	steps [][]string // the paths, split
}

func newKeyDefinition(paths []string) (keyDefinition, error) {
	if len(paths) == 0 || len(paths) > 3 {
		return keyDefinition{}, badRequest("A container has a partition key of one to three paths.")
	}
	k := keyDefinition{paths: paths}
	for _, p := range paths {
		steps, ok := splitPath(p)
		if !ok {
			return keyDefinition{}, badRequest("The partition key path %q is not of the form /property.", p)
		}
		k.steps = append(k.steps, steps)
	}
	return k, nil
}

// splitPath splits /a/b; a step in quotes may contain slashes.
func splitPath(p string) (steps []string, ok bool) {
	for p != "" {
		if p[0] != '/' || len(p) == 1 {
			return nil, false
		}
		p = p[1:]
		if p[0] == '"' {
			step, rest, closed := strings.Cut(p[1:], `"`)
			if !closed {
				return nil, false
			}
			steps, p = append(steps, step), rest
			continue
		}
		n := strings.IndexByte(p, '/')
		if n < 0 {
			n = len(p)
		}
		steps, p = append(steps, p[:n]), p[n:]
	}
	return steps, len(steps) > 0
}

func (k keyDefinition) hierarchical() bool { return len(k.paths) > 1 }

func (k keyDefinition) document() map[string]any {
	kind := "Hash"
	if k.hierarchical() {
		kind = "MultiHash"
	}
	return map[string]any{"paths": k.paths, "kind": kind, "version": 2}
}

// partitionKey is the value of a document's partition key: one component per path of the
// definition, or fewer, which then stand for all keys that begin with them.
type partitionKey struct {
	components []any  // nil, bool, float64, string or epk.Undefined
	text       string // the JSON form, the same for equal keys
	epk        string
}

func (k keyDefinition) key(components []any) partitionKey {
	texts := make([]any, len(components))
	for i, c := range components {
		if _, undefined := c.(epk.Undefined); undefined {
			c = struct{}{}
		}
		texts[i] = c
	}
	text, _ := json.Marshal(texts) // scalars always have a JSON form
	return partitionKey{components, string(text), epk.Of(components, k.hierarchical())}
}

// parse reads the JSON array that clients send as partition key. An empty object stands for
// undefined, and so does an array without elements.
func (k keyDefinition) parse(header string) (partitionKey, error) {
	var components []any
	if err := json.Unmarshal([]byte(header), &components); err != nil {
		return partitionKey{}, badRequest("The partition key %s is not a JSON array.", header)
	}
	if len(components) == 0 {
		for range k.paths {
			components = append(components, epk.Undefined{})
		}
	}
	if len(components) > len(k.paths) || len(components) < len(k.paths) && !k.hierarchical() {
		return partitionKey{}, &fault{status: 400, substatus: substatusKeyMismatch, message: "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document."}
	}
	for i, c := range components {
		switch v := c.(type) {
		case map[string]any:
			if len(v) > 0 {
				return partitionKey{}, badRequest("A partition key is made of scalars.")
			}
			components[i] = epk.Undefined{}
		case []any:
			return partitionKey{}, badRequest("A partition key is made of scalars.")
		}
	}
	return k.key(components), nil
}

// complete reports whether the key names one logical partition.
func (k keyDefinition) complete(p partitionKey) bool { return len(p.components) == len(k.paths) }

// span is the part of the key space that a key, complete or not, stands for.
func (k keyDefinition) span(p partitionKey) span {
	if k.complete(p) {
		return span{p.epk, p.epk + "01"}
	}
	return span{p.epk, p.epk + epk.Max}
}

// span is a part of the key space, from low up to and without high.
type span struct{ low, high string }

func everything() span { return span{epk.Min, epk.Max} }

func (s span) contains(position string) bool {
	return epk.Compare(s.low, position) <= 0 && epk.Compare(position, s.high) < 0
}

func (s span) overlaps(o span) bool {
	return epk.Compare(s.low, o.high) < 0 && epk.Compare(o.low, s.high) < 0
}
