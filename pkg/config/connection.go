package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// connectionSettings are the settings of a connection, by the convention of Azure Functions: the setting
// NAME, or settings NAME__field
// (https://learn.microsoft.com/azure/azure-functions/functions-reference#connections).
//
// Like the Functions host, it looks for AzureWebJobsNAME before NAME, and for both under
// ConnectionStrings (ConnectionStrings__NAME) first; the first that is set counts. NAME:field means
// NAME__field.
type connectionSettings struct {
	name   string // under which it was found
	lookup func(string) (string, bool)
}

// findConnection finds the settings of a connection: a connection string, or any one of fields. what says
// in the error which settings are allowed.
func findConnection(lookup func(string) (string, bool), name, what string, fields ...string) (connectionSettings, error) {
	if !isSettingName(name) {
		return connectionSettings{}, fmt.Errorf("%s is not the name of a setting; a connection string goes into a setting of its own, whose name stands here", yamltree.Quote(name))
	}
	for _, candidate := range []string{
		"ConnectionStrings__AzureWebJobs" + name,
		"AzureWebJobs" + name,
		"ConnectionStrings__" + name,
		name,
	} {
		c := connectionSettings{name: candidate, lookup: lookup}
		if found := placeholder.FindString(c.value()); found != "" {
			return c, c.wrong("", fmt.Errorf("holds the placeholder %s, which nothing replaced; allowed is the value itself", yamltree.Quote(found)))
		}
		if c.value() != "" || slices.ContainsFunc(fields, func(field string) bool { return c.field(field) != "" }) {
			return c, nil
		}
	}
	return connectionSettings{}, fmt.Errorf("the setting %s is missing; %s", name, what)
}

// value returns the connection string; "" if there is none.
func (c connectionSettings) value() string { return c.first(c.name) }

// field returns the value of NAME__field; "" if there is none.
func (c connectionSettings) field(field string) string {
	return c.first(c.name+"__"+field, c.name+":"+field)
}

// first returns the first of the settings that has a value.
func (c connectionSettings) first(names ...string) string {
	for _, name := range names {
		if value, ok := c.lookup(name); ok && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// wrong returns an error about the connection string, or about a part of it: a field (" (Field)") or one of
// the settings ("__field").
func (c connectionSettings) wrong(part string, err error) error {
	return fmt.Errorf("the setting %s%s %w", c.name, part, err)
}

// isSettingName reports whether a text can be the name of a setting, which a connection string or a
// key cannot.
func isSettingName(text string) bool {
	return len(text) <= 128 && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]*$`).MatchString(text)
}

// Identity is the Microsoft Entra identity that a connection uses. The zero Identity is that of
// azidentity's DefaultAzureCredential.
type Identity struct {
	Credential Credential
	ClientID   string // of a user-assigned identity or an application; "" = system-assigned, or as the environment says
	TenantID   string // "" = as the environment says
	Secret     Secret // of a service principal, which then has both ids; zero: none
}

// Credential is the kind of credential that an identity is used with.
type Credential string

// The credentials, with the values that Functions has for NAME__credential.
const (
	CredentialDefault          Credential = ""
	CredentialManagedIdentity  Credential = "managedidentity"
	CredentialWorkloadIdentity Credential = "workloadidentity"
)

// identity reads NAME__credential, NAME__clientId, NAME__tenantId and NAME__clientSecret.
func (c connectionSettings) identity() (Identity, error) {
	// Each of these would select another identity.
	for _, field := range []string{"certificate", "managedIdentityResourceId", "managedIdentityObjectId"} {
		if c.field(field) != "" {
			return Identity{}, c.wrong("__"+field, errors.New("is not supported; allowed are __credential (managedidentity, workloadidentity), __clientId, __tenantId and __clientSecret"))
		}
	}
	id := Identity{
		Credential: Credential(strings.ToLower(c.field("credential"))),
		ClientID:   c.field("clientId"),
		TenantID:   c.field("tenantId"),
		Secret:     NewSecret(c.field("clientSecret")),
	}
	switch id.Credential {
	case CredentialDefault, CredentialManagedIdentity, CredentialWorkloadIdentity:
	default:
		return Identity{}, c.wrong("__credential", errors.New("is not supported; allowed are managedidentity and workloadidentity, or leave it out"))
	}
	if id.ClientID != "" && !regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id.ClientID) {
		return Identity{}, c.wrong("__clientId", errors.New("is not the client id of an identity; allowed is a GUID such as 00000000-0000-0000-0000-000000000000"))
	}
	switch {
	case id.Secret.IsZero():
	case id.Credential != CredentialDefault:
		return Identity{}, c.wrong("__clientSecret", errors.New("is for a service principal, and __credential names another identity; leave one of them out"))
	case id.ClientID == "" || id.TenantID == "":
		return Identity{}, c.wrong("__clientSecret", errors.New("is that of a service principal; set __tenantId and __clientId beside it"))
	}
	return id, nil
}

// parseEndpoint reads the URL of a service: one of the given schemes, a host, a port or none, and
// nothing else.
func parseEndpoint(text string, schemes ...string) (*url.URL, error) {
	allowed := fmt.Errorf("is not an address; allowed is %s://HOST/ or %[1]s://HOST:PORT/", schemes[0])
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil || !slices.Contains(schemes, u.Scheme) ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, allowed // the error of package url contains the text
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, allowed
		}
	}
	return u, nil
}

// Secret is a key or a connection string. Printed, logged or encoded, alone or inside another value, it
// never shows its text; only Reveal returns it. Two Secrets are equal if their texts are.
type Secret struct {
	// fmt prints unexported fields without calling String: of a handle it prints only a pointer.
	hidden unique.Handle[string]
}

// NewSecret returns a Secret with a text. The Secret of "" is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text, for the client that signs with it.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.hidden.Value()
}

// IsZero reports whether the text is "".
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns "(secret)", or "" for the zero Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "(secret)"
}

// MarshalText does not show the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
