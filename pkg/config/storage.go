package config

import "github.com/feedscale/feedscale/pkg/connectionstring"

// StorageConnection is a storage account and the connection string to sign in with.
type StorageConnection struct {
	Setting          string // name of the setting
	ConnectionString Secret // as it was written; may be UseDevelopmentStorage=true
}

// ParseStorageConnection reads a connection string of a storage account from the setting NAME
// (connectionstring.ParseStorage). The error never contains a key or a signature.
func ParseStorageConnection(lookup func(string) (string, bool), name string) (StorageConnection, error) {
	settings, err := findConnection(lookup, name,
		"set "+name+" to a storage connection string (UseDevelopmentStorage=true for Azurite); to sign in with an identity, use https://ACCOUNT.table.core.windows.net/TABLE")
	if err != nil {
		return StorageConnection{}, err
	}
	text := settings.value()
	if _, err := connectionstring.ParseStorage(text); err != nil {
		return StorageConnection{}, settings.wrong("", err)
	}
	return StorageConnection{Setting: name, ConnectionString: NewSecret(text)}, nil
}
