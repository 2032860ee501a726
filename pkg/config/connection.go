package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// connectionSettings is what a connection's name stands for, in the Functions
// convention: the setting NAME, or settings NAME__field.
//
// The host looks for AzureWebJobsNAME before NAME, and for either among the
// ConnectionStrings (ConnectionStrings__NAME) first; the first of them that has
// anything counts. In NAME__field, ':' may stand for "__".
type connectionSettings struct {
	name   string // as the host found it
	lookup func(string) (string, bool)
}

// findConnection finds the settings of a connection. fields are those of which
// one is enough in place of a connection string; what tells what would do.
func findConnection(lookup func(string) (string, bool), name, what string, fields ...string) (connectionSettings, error) {
	if !isSettingName(name) {
		return connectionSettings{}, fmt.Errorf("%s is not the name of a setting; a connection string goes into a setting of its own, whose name stands here", shown(name))
	}
	for _, candidate := range []string{
		"ConnectionStrings__AzureWebJobs" + name,
		"AzureWebJobs" + name,
		"ConnectionStrings__" + name,
		name,
	} {
		c := connectionSettings{name: candidate, lookup: lookup}
		if c.value() != "" {
			return c, nil
		}
		for _, field := range fields {
			if c.field(field) != "" {
				return c, nil
			}
		}
	}
	return connectionSettings{}, fmt.Errorf("the setting %s is missing; %s", name, what)
}

// value returns the connection string, "" where there is none.
func (c connectionSettings) value() string { return c.first(c.name) }

// field returns the value of NAME__field, "" where there is none.
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

// wrong is an error about the connection string, or about a part of the
// settings: "__field", or " (Field)" of the connection string.
func (c connectionSettings) wrong(part string, err error) error {
	return fmt.Errorf("the setting %s%s %w", c.name, part, err)
}

// isSettingName tells whether a text can name a setting; a connection string
// or a key cannot.
func isSettingName(text string) bool {
	return len(text) <= 128 && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]*$`).MatchString(text)
}

// Identity is which Microsoft Entra identity a connection uses. The zero
// Identity leaves the choice to the environment, as azidentity's default chain
// does.
type Identity struct {
	Credential Credential
	ClientID   string // of a user-assigned identity or an application; "" = system-assigned, or what the environment says
	TenantID   string // "" = what the environment says
}

// Credential is a way to prove an identity.
type Credential string

// The credentials, with the values that Functions has for NAME__credential.
const (
	CredentialDefault          Credential = ""
	CredentialManagedIdentity  Credential = "managedidentity"
	CredentialWorkloadIdentity Credential = "workloadidentity"
)

// identity reads NAME__credential, NAME__clientId and NAME__tenantId.
func (c connectionSettings) identity() (Identity, error) {
	// These would choose another identity, so they are not passed over.
	for _, field := range []string{"clientSecret", "certificate", "managedIdentityResourceId", "managedIdentityObjectId"} {
		if c.field(field) != "" {
			return Identity{}, c.wrong("__"+field, errors.New("is not supported; allowed are __credential (managedidentity, workloadidentity), __clientId and __tenantId"))
		}
	}
	id := Identity{
		Credential: Credential(strings.ToLower(c.field("credential"))),
		ClientID:   c.field("clientId"),
		TenantID:   c.field("tenantId"),
	}
	switch id.Credential {
	case CredentialDefault, CredentialManagedIdentity, CredentialWorkloadIdentity:
	default:
		return Identity{}, c.wrong("__credential", errors.New("is not supported; allowed are managedidentity and workloadidentity, or leave it out"))
	}
	if id.ClientID != "" && !regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id.ClientID) {
		return Identity{}, c.wrong("__clientId", errors.New("is not the client id of an identity; allowed is a GUID such as 00000000-0000-0000-0000-000000000000"))
	}
	return id, nil
}
