package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
)

// Setting is a setting to make.
type Setting struct {
	Name  string
	Value string // "" if it is a secret or unknown
	What  string // says what the value is
}

// String returns the setting in one line.
func (s Setting) String() string {
	if s.Value == "" {
		return s.Name + ": " + s.What
	}
	return s.Name + "=" + s.Value + ": " + s.What
}

// account returns the name of the connection for an account, and adds the settings that it needs;
// their names are what follows that of the connection, such as __accountKey. The name is wanted, or
// wanted with a number if another account has that.
func (o *output) account(id, wanted string, needs ...Setting) string {
	name, known := o.connections[id]
	if !known {
		name = wanted
		for n := 2; slices.Contains(slices.Collect(maps.Values(o.connections)), name); n++ {
			name = fmt.Sprintf("%s_%d", wanted, n)
		}
		o.connections[id] = name
	}
	if _, err := config.ParseCosmosConnection(o.lookup, name); err == nil {
		return name
	}
	for _, n := range needs {
		n.Name = name + n.Name
		_, listed := o.missing[n.Name]
		if value, _ := o.lookup(n.Name); !listed && strings.TrimSpace(value) == "" {
			o.missing[n.Name] = n
		}
	}
	return name
}

// settingName makes the name of a setting from words.
func settingName(words ...string) string {
	name := strings.ToUpper(strings.ReplaceAll(config.EntryName(strings.Join(words, "-")), "-", "_"))
	if !config.IsSettingName(name) {
		name = strings.TrimRight("COSMOS_"+name, "_")
	}
	return name
}
