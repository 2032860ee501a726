package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// connectionString is the fields of an Azure connection string by their names in lower case, since
// the services ignore order and case.
type connectionString map[string]string

// parseConnectionString reads "Name=value;Name=value;". A value may contain '='. Errors never
// contain a value.
func parseConnectionString(text string) (connectionString, error) {
	fields := connectionString{}
	for i, part := range strings.Split(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fmt.Errorf("part %d of it is not name=value; copy the connection string whole, without quotes", i+1)
		}
		key := strings.ToLower(name)
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("part %d of it repeats a name; copy the connection string once", i+1)
		}
		fields[key] = strings.TrimSpace(value)
	}
	return fields, nil
}

// checkKey returns an error, which does not contain the key, where an account key is not base64.
func checkKey(key string) error {
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) == 0 {
		return errors.New("is not base64, as every account key is; copy the key whole, up to the last =")
	}
	return nil
}

// parseEndpoint reads the URL of a service: one of the given schemes, a host, a port or none, and
// nothing else.
func parseEndpoint(text string, schemes ...string) (*url.URL, error) {
	allowed := fmt.Errorf("is not an address; allowed is %s://HOST/ or %[1]s://HOST:PORT/", schemes[0])
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil {
		return nil, allowed // the error of package url contains the text
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, allowed
		}
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, allowed
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme {
			return u, nil
		}
	}
	return nil, allowed
}
