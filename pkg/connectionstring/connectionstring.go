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

// Parse reads "Name=value;Name=value;". A value may contain '='.
func Parse(text string) (Fields, error) {
	fields := Fields{}
	for i, part := range strings.Split(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		key := strings.ToLower(strings.TrimSpace(name))
		if _, twice := fields[key]; strings.TrimSpace(part) != "" && (!ok || key == "" || twice) {
			return fields, fmt.Errorf("is no connection string: part %d of it is not name=value, or repeats a name; copy the connection string whole, once and without quotes", i+1)
		}
		fields[key] = strings.TrimSpace(value)
	}
	return fields, nil
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
	fields, err := Parse(text)
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
		return Storage{}, errors.New("names no account; allowed is AccountName=...;AccountKey=...;EndpointSuffix=core.windows.net")
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
