package importer

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// schemaLine is for editors (docs/configure.md, Completion in an editor).
const schemaLine = "# yaml-language-server: $schema=pkg/config/processors.schema.json\n"

// output is the result in the making.
type output struct {
	groups, processors []*entry
	names              map[string]bool // of both
	remarks            yamltree.Mistakes
	lookup             func(string) (string, bool)
	connections        map[string]string  // their names, by the identity of the account
	missing            map[string]Setting // that connections need, and lookup does not find
}

// entry is a processor or a group. Numbers are as they were written.
type entry struct {
	Name             string
	Group            string            `yaml:",omitempty"`
	Connection       string            `yaml:",omitempty"`
	LeaseConnection  string            `yaml:"leaseConnection,omitempty"`
	DatabaseID       string            `yaml:"databaseId,omitempty"`
	ContainerID      string            `yaml:"containerId,omitempty"`
	LeaseDatabaseID  string            `yaml:"leaseDatabaseId,omitempty"`
	LeaseContainerID string            `yaml:"leaseContainerId,omitempty"`
	ProcessorName    string            `yaml:"processorName,omitempty"`
	StartFrom        string            `yaml:"startFrom,omitempty"`
	LeaseExpiration  string            `yaml:"leaseExpiration,omitempty"`
	OnlyWithLag      bool              `yaml:"limitToPartitionsWithLag,omitempty"`
	Threshold        *yaml.Node        `yaml:"changeFeedLagThreshold,omitempty"`
	Activation       *yaml.Node        `yaml:"activationChangeFeedLagThreshold,omitempty"`
	MaxLeases        *yaml.Node        `yaml:"maxLeasesPerReplica,omitempty"`
	MinReplicas      *yaml.Node        `yaml:"minReplicaCount,omitempty"`
	MaxReplicas      *yaml.Node        `yaml:"maxReplicaCount,omitempty"`
	Target           map[string]string `yaml:",flow,omitempty"`
	Cooldown         *yaml.Node        `yaml:"cooldownPeriod,omitempty"`
	Fallback         any               `yaml:",flow,omitempty"`
	Behavior         any               `yaml:",flow,omitempty"`
	Schedules        []window          `yaml:",flow,omitempty"`
	Paused           bool              `yaml:",omitempty"`
}

// line is the first line of a text: a field is a line of the file.
func line(v *yamltree.Node) string {
	first, _, _ := strings.Cut(v.Text(), "\n")
	return first
}

// number is a scalar without quotes, as it was written; nil if it is absent. The metadata of a
// trigger has texts for numbers.
func number(v *yamltree.Node) *yaml.Node {
	text := strings.TrimSpace(line(v))
	if text == "" {
		return nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}

// freeName takes a name that no entry has.
func (o *output) freeName(candidates ...string) string {
	name := config.FreeName(o.names, candidates...)
	o.names[name] = true
	return name
}

// render writes the processors file, in the style of docs/configure.md.
func (o *output) render() ([]byte, error) {
	out := bytes.NewBufferString(schemaLine)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err := encoder.Encode(struct {
		Groups     []*entry `yaml:",omitempty"`
		Processors []*entry
	}{o.groups, o.processors})
	return out.Bytes(), err
}

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
		if value, _ := o.lookup(n.Name); strings.TrimSpace(value) == "" {
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
