package imports

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/config"
)

// account is what a connection of the processors file stands for: settings of one name.
type account struct {
	setting string // the name of the connection
	id      string // tells it from others
	needs   []need
}

// need is one setting of a connection.
type need struct {
	suffix string   // behind the name of the connection, such as __accountKey
	value  string   // where it is known and no secret
	what   string   // what the value is
	from   []string // where it is found; those of several workloads have to be the same
}

// account returns the name of the connection for an id, and remembers what it needs. wanted is its
// name, unless another has it.
func (c *converter) account(id, wanted string, needs ...need) string {
	for _, a := range c.accounts {
		if a.id == id {
			for _, n := range needs {
				a.add(n)
			}
			return a.setting
		}
	}
	name := wanted
	for n := 2; slices.ContainsFunc(c.accounts, func(a *account) bool { return a.setting == name }); n++ {
		name = fmt.Sprintf("%s_%d", wanted, n)
	}
	c.accounts = append(c.accounts, &account{name, id, needs})
	return name
}

// add adds where a setting is found, too.
func (a *account) add(n need) {
	i := slices.IndexFunc(a.needs, func(known need) bool { return known.suffix == n.suffix && known.what == n.what })
	if i < 0 {
		return // one way to make the setting is enough
	}
	for _, from := range n.from {
		if !slices.Contains(a.needs[i].from, from) {
			a.needs[i].from = append(a.needs[i].from, from)
		}
	}
}

// missing lists the settings that lookup does not find.
func (c *converter) missing() []Setting {
	has := func(name string) bool {
		value, ok := c.lookup(name)
		return ok && strings.TrimSpace(value) != ""
	}
	var all []Setting
	for _, a := range c.accounts {
		_, err := config.ParseCosmosConnection(c.lookup, a.setting)
		for _, n := range a.needs {
			if has(a.setting) || has(a.setting+n.suffix) || n.suffix == "" && err == nil {
				continue
			}
			what := n.what
			if len(n.from) > 0 {
				what += " " + strings.Join(n.from, ", ")
			}
			if len(n.from) > 1 {
				what += "; it has to be the same for all of them"
			}
			all = append(all, Setting{a.setting + n.suffix, n.value, oneLine(what)})
		}
	}
	slices.SortFunc(all, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// endpointOf returns an endpoint that can be shown, and the name of its account; ok is false for
// anything but the address of an account.
func endpointOf(text string) (endpoint, name string, ok bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return "", "", false
	}
	name, _, _ = strings.Cut(u.Hostname(), ".")
	return u.String(), name, true
}

// settingForm is that of the name of a setting (docs/configure.md, Connections).
var settingForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
