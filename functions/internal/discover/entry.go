package discover

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Entry is the fields of the processors file by which feedscale finds a processor's leases, without
// those that have their default.
type Entry struct {
	Name             string `yaml:"name" json:"name"`
	Connection       string `yaml:"connection" json:"connection"`
	LeaseConnection  string `yaml:"leaseConnection,omitempty" json:"leaseConnection,omitempty"`
	DatabaseID       string `yaml:"databaseId" json:"databaseId"`
	ContainerID      string `yaml:"containerId" json:"containerId"`
	LeaseDatabaseID  string `yaml:"leaseDatabaseId,omitempty" json:"leaseDatabaseId,omitempty"`
	LeaseContainerID string `yaml:"leaseContainerId,omitempty" json:"leaseContainerId,omitempty"`
	ProcessorName    string `yaml:"processorName,omitempty" json:"processorName,omitempty"`
	AccountHost      string `yaml:"accountHost,omitempty" json:"accountHost,omitempty"`
}

// YAML is the entry as an item of the list of processors. Invisible characters are escaped.
func (e Entry) YAML() (string, error) {
	var list yaml.Node
	if err := list.Encode([]Entry{e}); err != nil {
		return "", err
	}
	for _, n := range list.Content[0].Content {
		if strings.ContainsFunc(n.Value, unseen) {
			n.Style = yaml.DoubleQuotedStyle // no other style has escapes
		}
	}
	text, err := yaml.Marshal(&list)
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '\n' || !unseen(r):
			b.WriteRune(r)
		case r <= math.MaxUint16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String(), err
}

func unseen(r rune) bool { return !unicode.IsPrint(r) }

// refused is the first mistake that the configuration finds in an entry; "" if it finds none.
func (s survey) refused(e Entry) string {
	text, err := e.YAML()
	if err == nil {
		_, err = config.Load("", []byte("processors:\n"+text), func(name string) (string, bool) {
			return "AccountEndpoint=https://" + s.connection.Host + "/;AccountKey=AAAA", !strings.HasSuffix(name, "tokenScope")
		})
	}
	mistakes, ok := errors.AsType[config.Mistakes](err)
	if err == nil || !ok {
		return ""
	}
	m := mistakes[0]
	return m.Field[strings.LastIndex(m.Field, ".")+1:] + ": " + m.Text
}

// toFill is a value that only the user can know.
const toFill = "?"

// propose makes the entry of a processor, or a draft with a note on what the user has to fill in.
func (s survey) propose(r *Processor, o origin) {
	e := Entry{Connection: s.connection.Setting, DatabaseID: toFill, ContainerID: toFill}
	ownHost := r.AccountHost != nil
	if ownHost {
		e.ProcessorName, e.AccountHost = *r.ProcessorName, s.differing(*r.AccountHost)
	} else {
		e.ProcessorName, e.AccountHost = splitAnywhere(r.Head)
	}
	found := o.container != cosmos.Container{}
	if found {
		e.DatabaseID, e.ContainerID = o.container.Database, o.container.ID
	}
	ready := found && (ownHost || e.AccountHost != "")
	switch {
	case found && ownHost:
	case ready:
		r.Note = note("the ids join processor name and host: %s. These lines find the leases as they are; to show the name, move it from accountHost to processorName.%s", r.Head, s.elsewhere(o))
	case found:
		r.Note = note("the ids begin with %q, which ends with no host: fill in processorName and accountHost, which they join", r.Head)
	case len(o.readings) == 0:
		r.Note = note("the ids are none that an SDK is known to write")
		return
	case len(o.readings) > 1:
		r.Note = note("names with '_' in them do not tell the database from the container, nor does account %s: fill in what %s stands for", s.connection.Host, o.monitored())
	case ownHost:
		r.Note = note("account %s has no container %s: it was deleted or created anew, and these leases are left over", s.connection.Host, o.monitored())
		return
	default:
		r.Note = note("account %s has no container %s: it was deleted or created anew, and these leases are left over; or it is in another account, whose host ends %s: then fill in the setting that connects there, and the names", s.connection.Host, o.monitored(), r.Head)
		e.Connection, e.LeaseConnection = toFill, s.connection.Setting
		if !o.byRID {
			e.DatabaseID, e.ContainerID = o.readings[0].Database, o.readings[0].Container
		}
	}
	if s.container.Database != e.DatabaseID {
		e.LeaseDatabaseID = s.container.Database
	}
	if s.container.ID != "leases" {
		e.LeaseContainerID = s.container.ID
	}
	if ready {
		r.Entry = &e
		return
	}
	if !ownHost && e.AccountHost == "" {
		e.AccountHost = toFill
	}
	r.Draft = &e
}

// differing is the host of the ids, if feedscale would not find it: it looks for the host of the
// connection, as it is and in lower case.
func (s survey) differing(host string) string {
	if host == s.connection.Host || host == strings.ToLower(s.connection.Host) {
		return ""
	}
	return host
}

// elsewhere warns that another account may have a container of the same names.
func (s survey) elsewhere(o origin) string {
	if o.byRID {
		return ""
	}
	return fmt.Sprintf(" If that host is not one of account %s, connection has to be the setting of its own, and leaseConnection: %s.", s.connection.Host, s.connection.Setting)
}

// splitAnywhere splits a head with an unknown host into two parts that the processors file allows.
// Where it splits does not matter, since leases are looked up by both joined. The host is "" if the
// head ends with none.
func splitAnywhere(head string) (processorName, host string) {
	const others = "._-"
	end := strings.LastIndexFunc(head, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(others, r) })
	host = head
	if end >= 0 {
		_, size := utf8.DecodeRuneInString(head[end:])
		host = head[end+size:]
	}
	host = strings.TrimLeft(host, others)
	if host != strings.TrimRight(host, others) {
		return head, ""
	}
	return strings.TrimSuffix(head, host), host
}

func note(format string, args ...any) *string {
	text := fmt.Sprintf(format, args...)
	return &text
}

// suggest names the entries. It drops those that the configuration refuses, and those that equal
// another: a processor that changes its lease format has leases with two prefixes.
func (s survey) suggest(processors []Processor, taken map[string]bool) {
	first := make(map[Entry]*Processor)
	for i := range processors {
		p := &processors[i]
		e := cmp.Or(p.Entry, p.Draft)
		if e == nil {
			continue
		}
		if p.Entry != nil {
			same := *e
			same.AccountHost = strings.ToLower(cmp.Or(e.AccountHost, s.connection.Host))
			if twin := first[same]; twin != nil {
				// The host with the case of Java's leases finds both.
				twin.Entry.AccountHost = cmp.Or(e.AccountHost, twin.Entry.AccountHost)
				p.Entry, p.Note = nil, note("the same processor as %s", twin.Prefix)
				continue
			}
			first[same] = p
		}
		e.Name = freeName(taken, e)
		if p.Entry != nil {
			if why := s.refused(*e); why != "" {
				p.Entry, p.Note = nil, note("the processors file does not take these leases: %s", why)
				continue
			}
		}
		taken[e.Name] = true
	}
}

// freeName names an entry after its processor, or after both that and its container; without a
// processor name, after the container or the host.
func freeName(taken map[string]bool, e *Entry) string {
	container := strings.Trim(e.ContainerID, toFill)
	if config.EntryName(e.ProcessorName) == "" {
		account, _, _ := strings.Cut(e.AccountHost, ".")
		return config.FreeName(taken, cmp.Or(config.EntryName(container), account))
	}
	return config.FreeName(taken, e.ProcessorName, e.ProcessorName+"-"+container)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
