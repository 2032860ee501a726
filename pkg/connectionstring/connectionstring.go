// Package connectionstring reads the connection strings of Azure's services. An error says what is
// wrong with the string, without a value of it, and goes on after its name ("the setting COSMOS
// ...").
//
// It opens no connection. Start with Parse.
//
// The package is internal to the program: its API may change in any release.
package connectionstring

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Fields are the values of a connection string by their names in lower case, which are not ordered.
type Fields map[string]string

// Service is a service, and the form of its connection strings.
type Service struct{ name, form string }

// The services.
var (
	CosmosDB     = Service{"Cosmos DB", "AccountEndpoint=https://ACCOUNT.documents.azure.com:443/;AccountKey=..."}
	azureStorage = Service{"Azure Storage", "AccountName=...;AccountKey=...;EndpointSuffix=core.windows.net"}
	ServiceBus   = Service{"Service Bus", "Endpoint=sb://NAMESPACE.servicebus.windows.net/;SharedAccessKeyName=...;SharedAccessKey=..."}
)

// serviceOf returns the service of a connection string, by fields that no other service has; the
// zero Service if it cannot tell.
func serviceOf(text string, fields Fields) Service {
	has := func(name string) bool { return fields[name] != "" }
	switch {
	case strings.HasPrefix(text, "mongodb:") || strings.HasPrefix(text, "mongodb+srv:"):
		return Service{name: "MongoDB"}
	case has("accountendpoint"):
		return CosmosDB
	case has("accountname") || has("usedevelopmentstorage") || has("tableendpoint") || has("blobendpoint"):
		return azureStorage
	case strings.HasPrefix(fields["endpoint"], "sb://"):
		return ServiceBus
	}
	return Service{}
}

// Parse reads "Name=value;Name=value;" of a service. A value may contain '='. A connection string
// of another service is refused by its name.
func Parse(text string, of Service) (Fields, error) {
	fields, err := Fields{}, error(nil)
	for i, part := range strings.Split(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		key := strings.ToLower(strings.TrimSpace(name))
		if _, twice := fields[key]; err == nil && strings.TrimSpace(part) != "" && (!ok || key == "" || twice) {
			err = fmt.Errorf("is no connection string: part %d of it is not name=value, or repeats a name; copy the connection string whole, once and without quotes", i+1)
		}
		fields[key] = strings.TrimSpace(value)
	}
	if other := serviceOf(text, fields); other != of && other != (Service{}) {
		return nil, fmt.Errorf("is a connection string of %s, not of %s; allowed is %s", other.name, of.name, of.form)
	}
	return fields, err
}

// CheckKey returns an error unless an account key is base64.
func CheckKey(key string) error {
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) == 0 {
		return errors.New("is not base64, as every account key is; copy the key whole, up to the last =")
	}
	return nil
}

// Storage is what a storage connection string says about the Table service.
type Storage struct {
	Endpoint  string // of the service, without a query
	Account   string
	Key       string // base64; "" if there is a signature
	Signature string // a shared access signature, without its question mark
}

// The account of the storage emulators is public and the same everywhere
// (https://learn.microsoft.com/azure/storage/common/storage-use-azurite).
const (
	emulatorAccount = "devstoreaccount1"
	emulatorKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// ParseStorage reads a storage connection string: UseDevelopmentStorage=true, or AccountName with
// AccountKey, or AccountName or TableEndpoint with SharedAccessSignature. Like the other Azure
// SDKs, and unlike aztables, it accepts names in any case, UseDevelopmentStorage=true, and an
// endpoint together with a shared access signature.
func ParseStorage(text string) (Storage, error) {
	fields, err := Parse(text, azureStorage)
	if err != nil {
		return Storage{}, err
	}
	s := Storage{
		Endpoint: strings.TrimSuffix(fields["tableendpoint"], "/"), Account: fields["accountname"],
		Key: fields["accountkey"], Signature: strings.TrimPrefix(fields["sharedaccesssignature"], "?"),
	}
	switch {
	case strings.EqualFold(fields["usedevelopmentstorage"], "true"):
		host := cmp.Or(strings.TrimSuffix(fields["developmentstorageproxyuri"], "/"), "http://127.0.0.1")
		s = Storage{Endpoint: host + ":10002/" + emulatorAccount, Account: emulatorAccount, Key: emulatorKey}
	case s.Account == "" && s.Endpoint == "":
		return Storage{}, errors.New("names no account; allowed is " + azureStorage.form)
	case s.Signature != "":
		s.Key = ""
	case s.Account == "" || s.Key == "":
		return Storage{}, errors.New("does not sign in; allowed are AccountName with AccountKey, or SharedAccessSignature")
	default:
		if err := CheckKey(s.Key); err != nil {
			return Storage{}, fmt.Errorf("has no usable AccountKey: it %w", err)
		}
	}
	if s.Endpoint == "" {
		s.Endpoint = fmt.Sprintf("%s://%s.table.%s", cmp.Or(fields["defaultendpointsprotocol"], "https"), s.Account, cmp.Or(fields["endpointsuffix"], "core.windows.net"))
	}
	if u, err := url.Parse(s.Endpoint); err != nil || u.Host == "" || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return Storage{}, errors.New("has a TableEndpoint, or fields that make one, that is not https://HOST")
	}
	return s, nil
}
