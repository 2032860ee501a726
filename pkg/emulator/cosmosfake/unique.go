package cosmosfake

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// uniqueKeys are sets of paths whose values, taken together, no two documents of one logical
// partition share. They are set when a container is created and never change; see
// https://learn.microsoft.com/azure/cosmos-db/unique-keys.
type uniqueKeys [][][]string // keys, their paths, the paths' steps

// uniqueKeyPolicy is the policy as clients send it.
type uniqueKeyPolicy struct {
	UniqueKeys []struct {
		Paths []string `json:"paths"`
	} `json:"uniqueKeys"`
}

func (p uniqueKeyPolicy) parse() (uniqueKeys, error) {
	var all uniqueKeys
	for _, k := range p.UniqueKeys {
		var paths [][]string
		for _, path := range k.Paths {
			steps, ok := splitPath(path)
			if !ok {
				return nil, badRequest("The unique key path %q is not of the form /property.", path)
			}
			paths = append(paths, steps)
		}
		if len(paths) == 0 {
			return nil, badRequest("A unique key has at least one path.")
		}
		all = append(all, paths)
	}
	return all, nil
}

func (u uniqueKeys) equal(other uniqueKeys) bool {
	return len(u) == len(other) && (len(u) == 0 || reflect.DeepEqual(u, other))
}

// of returns the unique key values of a document with these fields. A missing value counts as null.
func (u uniqueKeys) of(key partitionKey, fields []field) []string {
	var occupied []string
	for i, paths := range u {
		values := []any{key.text, i}
		for _, steps := range paths {
			v := extract(fields, steps)
			if _, undefined := v.(epk.Undefined); undefined {
				v = nil
			}
			values = append(values, v)
		}
		text, _ := json.Marshal(values) // scalars always have a JSON form
		occupied = append(occupied, string(text))
	}
	return occupied
}

// checkUnique refuses a version of a document whose unique key values another document has.
func (t *transaction) checkUnique(d *document) error {
	for _, occupied := range d.unique {
		if holder, ok := t.partition.unique[occupied]; ok && holder.name != d.name {
			if _, staged := t.changed[holder.name]; !staged {
				return uniqueViolation()
			}
		}
	}
	if len(d.unique) == 0 {
		return nil
	}
	for name, staged := range t.changed {
		if staged != nil && name != d.name && slices.ContainsFunc(staged.unique, func(s string) bool { return slices.Contains(d.unique, s) }) {
			return uniqueViolation()
		}
	}
	return nil
}

// uniqueViolation is worded as in https://github.com/Azure/azure-cosmos-dotnet-v2/issues/523.
func uniqueViolation() *fault {
	return &fault{status: http.StatusConflict, message: "Unique index constraint violation.", charge: 1}
}

// occupy notes a committed version in the place of the one before; either may be nil. In a
// transaction who gives a value up comes before who takes it. The caller holds mu.
func (p *partition) occupy(old, d *document) {
	if old != nil {
		for _, occupied := range old.unique {
			delete(p.unique, occupied)
		}
	}
	if d != nil {
		for _, occupied := range d.unique {
			p.unique[occupied] = d
		}
	}
}
