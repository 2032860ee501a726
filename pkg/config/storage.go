package config

import (
	"errors"
	"strings"
)

// StorageConnection is a storage account and the connection string to sign in with.
type StorageConnection struct {
	Setting          string // name of the setting
	ConnectionString Secret // as it was written; may be UseDevelopmentStorage=true
}

// ParseStorageConnection reads a connection string of a storage account from the setting NAME:
// UseDevelopmentStorage=true, or AccountName with AccountKey, or AccountName or TableEndpoint with
// SharedAccessSignature. The error never contains a key or a signature.
func ParseStorageConnection(lookup func(string) (string, bool), name string) (StorageConnection, error) {
	settings, err := findConnection(lookup, name,
		"set "+name+" to a storage connection string (UseDevelopmentStorage=true for Azurite); to sign in with an identity, use https://ACCOUNT.table.core.windows.net/TABLE")
	if err != nil {
		return StorageConnection{}, err
	}
	text := settings.value()
	if err := checkStorageConnectionString(text); err != nil {
		return StorageConnection{}, settings.wrong("", err)
	}
	return StorageConnection{Setting: name, ConnectionString: NewSecret(text)}, nil
}

func checkStorageConnectionString(text string) error {
	fields, err := parseConnectionString(text)
	if err != nil {
		return errors.New("is no connection string: " + err.Error())
	}
	if development := fields["usedevelopmentstorage"]; development != "" {
		if !strings.EqualFold(development, "true") {
			return errors.New("has a bad UseDevelopmentStorage; allowed is true")
		}
		return nil
	}
	account, key := fields["accountname"], fields["accountkey"]
	switch {
	case account == "" && fields["tableendpoint"] == "":
		return errors.New("names no account; allowed is AccountName=...;AccountKey=...;EndpointSuffix=core.windows.net")
	case fields["sharedaccesssignature"] != "":
		return nil
	case account == "" || key == "":
		return errors.New("does not sign in; allowed are AccountName with AccountKey, or SharedAccessSignature")
	}
	if err := checkKey(key); err != nil {
		return errors.New("has no usable AccountKey: it " + err.Error())
	}
	return nil
}
