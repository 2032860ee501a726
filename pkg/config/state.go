package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/feedscale/feedscale/pkg/connectionstring"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// State says where state is kept: in a file if BoltPath is not empty, else in a table.
type State struct {
	BoltPath string
	Table    Table
}

// Table is a table of a storage account: by connection string, or by URL and with an identity.
type Table struct {
	Name             string
	Setting          string // with the connection string; "" = none
	ConnectionString Secret // as it was written; may be UseDevelopmentStorage=true
	ServiceURL       string // https://ACCOUNT.table.core.windows.net, without the table and without a slash at the end; "" with a connection string
}

const stateForms = "allowed are bolt:PATH, https://ACCOUNT.table.core.windows.net/TABLE (identity) or table:SETTING/TABLE, SETTING naming a setting that holds a storage connection string"

// parseState reads FEEDSCALE_STATE. lookup finds the setting with the connection string.
func parseState(lookup func(string) (string, bool), text string) (State, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	setting, name, named := strings.Cut(rest, "/")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "bolt" && rest != "":
		return State{BoltPath: rest}, nil
	case scheme == "https":
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" {
			return State{}, errors.New("is not the address of a table, or carries a query: a shared access signature goes into a connection string; " + stateForms)
		}
		folder, name := path.Split(u.Path) // Azurite has a path before the table
		return State{Table: Table{Name: name, ServiceURL: "https://" + u.Host + strings.TrimSuffix(folder, "/")}}, checkTableName(name)
	case scheme == "table" && named:
		if err := checkTableName(name); err != nil {
			return State{}, err
		}
		s := findConnection(lookup, setting,
			"set "+setting+" to a storage connection string (UseDevelopmentStorage=true for Azurite); to sign in with an identity, use https://ACCOUNT.table.core.windows.net/TABLE", "")
		_, err := connectionstring.ParseStorage(s.value())
		s.refuse(err != nil, "", fmt.Sprint(err))
		return State{Table: Table{Name: name, Setting: setting, ConnectionString: NewSecret(s.value())}}, s.err
	}
	return State{}, errors.New("is no place for state; " + stateForms)
}

// checkTableName applies the naming rules of the Table service.
func checkTableName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`).MatchString(name) || strings.EqualFold(name, "tables") {
		return fmt.Errorf("%s is not the name of a table; allowed are 3 to 63 letters and digits, beginning with a letter", yamltree.Quote(name))
	}
	return nil
}
