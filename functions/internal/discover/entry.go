package discover

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

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

// YAML is the entry as an item of the list of processors.
func (e Entry) YAML() (string, error) {
	text, err := yaml.Marshal([]Entry{e})
	return string(text), err
}

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

// propose makes the entry of a processor, or a note on why there is none.
func (s survey) propose(r *Processor, o origin) {
	note := func(format string, args ...any) { r.Note = new(fmt.Sprintf(format, args...)) }
	host := s.connection.Host
	e := Entry{Connection: s.connection.Setting, DatabaseID: o.container.Database, ContainerID: o.container.ID}
	switch ownHost := r.AccountHost != nil; {
	case len(o.readings) == 0:
		note("the ids are none that an SDK is known to write")
		return
	case len(o.readings) > 1:
		note("the names have '_' in them, so the ids do not say where the database's name ends, and account %s does not tell either: write an entry with the names that %s stands for", host, o.monitored())
		return
	case o.container == cosmos.Container{}:
		note("account %s has no container %s: it was deleted or created anew, and these leases are left over", host, o.monitored())
		if !ownHost {
			*r.Note += fmt.Sprintf("; or it is in another account, whose host ends %s: then write an entry with connection: its setting, and leaseConnection: %s", r.Head, e.Connection)
		}
		return
	case ownHost:
		e.ProcessorName, e.AccountHost = *r.ProcessorName, *r.AccountHost
		if e.AccountHost == host || e.AccountHost == strings.ToLower(host) {
			e.AccountHost = "" // feedscale looks for these two
		}
	default: // leases are looked up by both joined
		e.AccountHost = r.Head
		note("the ids join processor name and host: %s. These lines find the leases as they are; to show the name, move it from accountHost to processorName.", r.Head)
		if !o.byRID { // another account may have a container of these names
			*r.Note += fmt.Sprintf(" If that host is not one of account %s, connection has to be the setting of its own, and leaseConnection: %s.", host, s.connection.Setting)
		}
	}
	if s.container.Database != e.DatabaseID {
		e.LeaseDatabaseID = s.container.Database
	}
	if s.container.ID != "leases" {
		e.LeaseContainerID = s.container.ID
	}
	r.Entry = &e
}

// suggest names the entries. It drops those that the configuration refuses, those that cannot be
// printed, and those that equal another: a processor that changes its lease format has leases with
// two prefixes.
func (s survey) suggest(processors []Processor, taken map[string]bool) {
	first := make(map[Entry]*Processor)
	for i := range processors {
		p := &processors[i]
		e := p.Entry
		if e == nil {
			continue
		}
		drop := func(why string) { p.Entry, p.Note = nil, &why }
		same := *e
		same.AccountHost = strings.ToLower(cmp.Or(e.AccountHost, s.connection.Host))
		if twin := first[same]; twin != nil {
			// The host with the case of Java's leases finds both.
			twin.Entry.AccountHost = cmp.Or(e.AccountHost, twin.Entry.AccountHost)
			drop("the same processor as " + twin.Prefix)
			continue
		}
		first[same] = p
		e.Name = freeName(taken, e)
		invisible := func(r rune) bool { return !unicode.IsPrint(r) }
		if strings.ContainsFunc(e.DatabaseID+e.ContainerID+s.container.String()+e.ProcessorName+e.AccountHost, invisible) {
			drop("a name has invisible characters: write an entry with escapes in double quotes")
		} else if why := s.refused(*e); why != "" {
			drop("the processors file does not take these leases: " + why)
		} else {
			taken[e.Name] = true
		}
	}
}

// freeName names an entry after its processor, or after both that and its container; without a
// processor name, after the container.
func freeName(taken map[string]bool, e *Entry) string {
	if config.EntryName(e.ProcessorName) == "" {
		return config.FreeName(taken, e.ContainerID)
	}
	return config.FreeName(taken, e.ProcessorName, e.ProcessorName+"-"+e.ContainerID)
}
