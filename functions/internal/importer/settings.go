package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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

// settings collects the needs of the connections.
type settings struct {
	lookup func(string) (string, bool)
	names  map[string]string // of the connections, by the identity of the account
	needs  []need
}

// need is one setting of a connection.
type need struct {
	connection string
	suffix     string   // after the name of the connection, such as __accountKey
	value      string   // if it is known and no secret
	what       string   // what the value is
	from       []string // workloads that have it, all with the same value
}

// account returns the name of the connection for an account, and adds its needs. It is wanted, or
// wanted with a number if another account has that name.
func (s *settings) account(id, wanted string, needs ...need) string {
	name, known := s.names[id]
	for n := 1; !known; n++ {
		if name = wanted; n > 1 {
			name = fmt.Sprintf("%s_%d", wanted, n)
		}
		if known = !slices.Contains(slices.Collect(maps.Values(s.names)), name); known {
			s.names[id] = name
		}
	}
	for _, n := range needs {
		n.connection = name
		same := func(o need) bool { return o.connection == n.connection && o.suffix == n.suffix }
		if i := slices.IndexFunc(s.needs, same); i < 0 {
			s.needs = append(s.needs, n)
		} else if from := s.needs[i].from; s.needs[i].what == n.what && len(n.from) > 0 && !slices.Contains(from, n.from[0]) {
			s.needs[i].from = append(from, n.from...)
		}
	}
	return name
}

// missing lists the settings that lookup does not find.
func (s *settings) missing() []Setting {
	has := func(name string) bool {
		value, ok := s.lookup(name)
		return ok && strings.TrimSpace(value) != ""
	}
	var all []Setting
	for _, n := range s.needs {
		_, err := config.ParseCosmosConnection(s.lookup, n.connection)
		if has(n.connection) || has(n.connection+n.suffix) || n.suffix == "" && err == nil {
			continue
		}
		what := n.what + " " + strings.Join(n.from, ", ")
		if len(n.from) > 1 {
			what += "; it has to be the same for all of them"
		}
		all = append(all, Setting{n.connection + n.suffix, n.value, strings.Join(strings.Fields(what), " ")})
	}
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// accountOf reads a connection string or, with the suffix __accountEndpoint, an endpoint. name is
// that of a setting for the account. An error says that feedscale cannot use it.
func accountOf(suffix, text string) (c config.CosmosConnection, name string, err error) {
	c, err = config.ParseCosmosConnection(func(setting string) (string, bool) { return text, setting == "X"+suffix }, "X")
	name, _, _ = strings.Cut(c.Host, ".")
	return c, settingName("COSMOS", name), err
}

// settingForm is that of the name of a setting (docs/configure.md, Connections).
var settingForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)

// settingName makes the name of a setting from words.
func settingName(words ...string) string {
	name := strings.ToUpper(strings.Join(strings.FieldsFunc(strings.Join(words, "_"), notAlphanumeric), "_"))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimRight("COSMOS_"+name, "_")
	}
	return name[:min(len(name), 100)] // leaves room for __accountEndpoint
}

func notAlphanumeric(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
}
