package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// connectionSettings are the setting NAME with a connection string, or settings NAME__field
// (https://learn.microsoft.com/azure/azure-functions/functions-reference#connections).
type connectionSettings struct {
	name   string                      // under which it was found
	lookup func(string) (string, bool) // as Lookup returns it
	err    error                       // the first thing that is wrong
}

// findConnection finds the connection string, or the setting with a field, under the names that the
// Functions host looks for, in its order. what says in the error which settings are allowed.
func findConnection(lookup func(string) (string, bool), name, what, field string) *connectionSettings {
	c := &connectionSettings{lookup: lookup}
	if !IsSettingName(name) {
		c.err = fmt.Errorf("%s is not the name of a setting; a connection string goes into a setting of its own, whose name stands here", yamltree.Quote(name))
		return c
	}
	for _, prefix := range []string{"ConnectionStrings__AzureWebJobs", "AzureWebJobs", "ConnectionStrings__", ""} {
		c.name = prefix + name
		if c.value() != "" || field != "" && c.field(field) != "" {
			wrong := unreplaced(c.value())
			c.refuse(wrong != "", "", wrong)
			return c
		}
	}
	c.refuse(true, "", "is missing; "+what)
	return c
}

// refuse keeps the first thing that is wrong with the connection string (""), with a field of it ("
// (Field)"), or with one of the settings ("__field"). text says what is wrong, and what is allowed.
func (c *connectionSettings) refuse(wrong bool, part, text string) {
	if wrong && c.err == nil {
		c.err = fmt.Errorf("the setting %s%s %s", c.name, part, text)
	}
}

// value returns the connection string; "" if there is none.
func (c *connectionSettings) value() string { return c.get(c.name) }

// field returns the value of NAME__field; "" if there is none.
func (c *connectionSettings) field(field string) string { return c.get(c.name + "__" + field) }

func (c *connectionSettings) get(name string) string {
	if value, ok := c.lookup(name); ok {
		return value
	}
	return ""
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
func (c *connectionSettings) identity() Identity {
	id := Identity{
		Credential: Credential(strings.ToLower(c.field("credential"))),
		ClientID:   c.field("clientId"),
		TenantID:   c.field("tenantId"),
		Secret:     NewSecret(c.field("clientSecret")),
	}
	for _, other := range []string{"certificate", "managedIdentityResourceId", "managedIdentityObjectId"} {
		c.refuse(c.field(other) != "", "__"+other, "is not supported; allowed are __credential (managedidentity, workloadidentity), __clientId, __tenantId and __clientSecret")
	}
	known := []Credential{CredentialDefault, CredentialManagedIdentity, CredentialWorkloadIdentity}
	c.refuse(!slices.Contains(known, id.Credential), "__credential", "is not supported; allowed are managedidentity and workloadidentity, or leave it out")
	c.refuse(id.ClientID != "" && !guid.MatchString(id.ClientID), "__clientId", "is not the client id of an identity; allowed is a GUID such as 00000000-0000-0000-0000-000000000000")
	if !id.Secret.IsZero() {
		c.refuse(id.Credential != CredentialDefault, "__clientSecret", "is for a service principal, and __credential names another identity; leave one of them out")
		c.refuse(id.ClientID == "" || id.TenantID == "", "__clientSecret", "is that of a service principal; set __tenantId and __clientId beside it")
	}
	return id
}

// parseEndpoint reads the URL of a service: one of the given schemes, a host, a port or none, and
// nothing else. The error does not quote the text, as that of package url does.
func parseEndpoint(text string, schemes ...string) (url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || u.Hostname() == "" || u.Port() == "0" || u.Opaque != "" || u.User != nil || !slices.Contains(schemes, u.Scheme) ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return url.URL{}, fmt.Errorf("is not an address; allowed is %s://HOST/ or %[1]s://HOST:PORT/", schemes[0])
	}
	return *u, nil
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
