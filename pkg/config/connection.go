package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// connectionSettings are the setting NAME with a connection string, or settings NAME__field or
// NAME:field (https://learn.microsoft.com/azure/azure-functions/functions-reference#connections).
type connectionSettings struct {
	name   string // under which it was found
	lookup func(string) (string, bool)
}

// findConnection finds the connection string, or the setting with a field, under the names that the
// Functions host looks for, in its order. what says in the error which settings are allowed.
func findConnection(lookup func(string) (string, bool), name, what, field string) (connectionSettings, error) {
	if !IsSettingName(name) {
		return connectionSettings{}, fmt.Errorf("%s is not the name of a setting; a connection string goes into a setting of its own, whose name stands here", yamltree.Quote(name))
	}
	for _, prefix := range []string{"ConnectionStrings__AzureWebJobs", "AzureWebJobs", "ConnectionStrings__", ""} {
		c := connectionSettings{name: prefix + name, lookup: lookup}
		if found := placeholder.FindString(c.value()); found != "" {
			return c, c.check(fault{"", true, fmt.Sprintf("holds the placeholder %s, which nothing replaced; allowed is the value itself", yamltree.Quote(found))})
		}
		if c.value() != "" || field != "" && c.field(field) != "" {
			return c, nil
		}
	}
	return connectionSettings{}, fmt.Errorf("the setting %s is missing; %s", name, what)
}

// value returns the connection string; "" if there is none.
func (c connectionSettings) value() string { return c.get(c.name) }

// field returns the value of NAME__field; "" if there is none.
func (c connectionSettings) field(field string) string {
	return cmp.Or(c.get(c.name+"__"+field), c.get(c.name+":"+field))
}

func (c connectionSettings) get(name string) string {
	if value, ok := c.lookup(name); ok {
		return strings.TrimSpace(value)
	}
	return ""
}

// fault is what may be wrong with the connection string ("") or with a part of it: a field ("
// (Field)"), or one of the settings ("__field").
type fault struct {
	part  string
	wrong bool
	text  string // what is wrong; what is allowed
}

// faulty is the fault of an error, if there is one.
func faulty(part string, err error) fault { return fault{part, err != nil, fmt.Sprint(err)} }

// check returns an error about the first fault.
func (c connectionSettings) check(faults ...fault) error {
	for _, f := range faults {
		if f.wrong {
			return fmt.Errorf("the setting %s%s %s", c.name, f.part, f.text)
		}
	}
	return nil
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
	guid        = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// IsSettingName reports whether a text can be the name of a setting, which a key cannot.
func IsSettingName(text string) bool { return settingName.MatchString(text) }

// Identity is a Microsoft Entra identity; the zero one is that of DefaultAzureCredential.
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

// identity reads the identity. It refuses the fields of Functions that would select another one.
func (c connectionSettings) identity() (Identity, error) {
	id := Identity{
		Credential: Credential(strings.ToLower(c.field("credential"))),
		ClientID:   c.field("clientId"),
		TenantID:   c.field("tenantId"),
		Secret:     NewSecret(c.field("clientSecret")),
	}
	const unsupported = "is not supported; allowed are __credential (managedidentity, workloadidentity), __clientId, __tenantId and __clientSecret"
	known := []Credential{CredentialDefault, CredentialManagedIdentity, CredentialWorkloadIdentity}
	return id, c.check(
		fault{"__certificate", c.field("certificate") != "", unsupported},
		fault{"__managedIdentityResourceId", c.field("managedIdentityResourceId") != "", unsupported},
		fault{"__managedIdentityObjectId", c.field("managedIdentityObjectId") != "", unsupported},
		fault{"__credential", !slices.Contains(known, id.Credential), "is not supported; allowed are managedidentity and workloadidentity, or leave it out"},
		fault{"__clientId", id.ClientID != "" && !guid.MatchString(id.ClientID), "is not the client id of an identity; allowed is a GUID such as 00000000-0000-0000-0000-000000000000"},
		fault{"__clientSecret", !id.Secret.IsZero() && id.Credential != CredentialDefault, "is for a service principal, and __credential names another identity; leave one of them out"},
		fault{"__clientSecret", !id.Secret.IsZero() && (id.ClientID == "" || id.TenantID == ""), "is that of a service principal; set __tenantId and __clientId beside it"},
	)
}

// parseEndpoint reads the URL of a service: one of the given schemes, a host, a port or none, and
// nothing else. The error does not quote the text, as that of package url does.
func parseEndpoint(text string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || u.Hostname() == "" || u.Port() == "0" || u.Opaque != "" || u.User != nil || !slices.Contains(schemes, u.Scheme) ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("is not an address; allowed is %s://HOST/ or %[1]s://HOST:PORT/", schemes[0])
	}
	return u, nil
}

// Secret is a key or a connection string. Printed, logged or encoded, alone or inside another
// value, it never shows its text; only Reveal returns it. Two Secrets are equal if their texts are.
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
