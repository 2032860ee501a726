package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/feedscale/feedscale/pkg/connectionstring"
)

// CosmosConnection is a Cosmos DB account and how to sign in to it.
type CosmosConnection struct {
	Setting    string   // name of the setting, as the processors file has it
	Endpoint   string   // scheme://host[:port]/, in lower case and without a default port: each account has one spelling
	Host       string   // host of the endpoint as it was written, in the user's case, without a port
	Key        Secret   // account key in base64; zero if an identity signs in
	Identity   Identity // used if Key is zero
	TokenScope string   // that the identity's token is asked for; "" = as the account is called
	ResourceID string   // of the account in Azure, for Azure Resource Manager; "" = not given
}

// UsesIdentity reports whether an identity signs in, and not a key.
func (c CosmosConnection) UsesIdentity() bool { return c.Key.IsZero() }

// accountID is the form of an account's resource id.
var accountID = regexp.MustCompile(`(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]+/providers/Microsoft\.DocumentDB/databaseAccounts/[^/]+$`)

// ParseCosmosConnection reads the connection in a setting, by the convention of Functions
// (docs/configure.md, Connections). The error says what is allowed, and never contains a key.
func ParseCosmosConnection(lookup func(string) (string, bool), name string) (CosmosConnection, error) {
	s := findConnection(lookup, name,
		"set "+name+" to a connection string, or "+name+"__accountEndpoint to https://ACCOUNT.documents.azure.com/ to sign in with an identity (or with "+name+"__accountKey)",
		"accountEndpoint")
	endpointPart, keyPart := "__accountEndpoint", "__accountKey"
	endpoint, key := s.field("accountEndpoint"), s.field("accountKey")
	if text := s.value(); text != "" {
		fields, err := connectionstring.Parse(text)
		endpoint, key = fields["accountendpoint"], fields["accountkey"]
		s.refuse(strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://"), "", "is an address; put it into the same name followed by __accountEndpoint, or set a connection string")
		s.refuse(err != nil, "", fmt.Sprint(err))
		s.refuse(endpoint == "", "", "has no AccountEndpoint; allowed is AccountEndpoint=https://ACCOUNT.documents.azure.com:443/;AccountKey=...;")
		s.refuse(key == "", "", "has no AccountKey; add it, or put the address alone into the same name followed by __accountEndpoint to sign in with an identity")
		endpointPart, keyPart = " (AccountEndpoint)", " (AccountKey)"
	}
	u, err := parseEndpoint(endpoint, "https", "http")
	s.refuse(err != nil, endpointPart, fmt.Sprint(err))
	host := strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	c := CosmosConnection{Setting: name, Endpoint: u.Scheme + "://" + host + "/", Host: u.Hostname(), Key: NewSecret(key)}
	scope := s.field("tokenScope")
	if key != "" {
		s.refuse(scope != "", "__tokenScope", "is for an identity, and a key signs in; leave it out, or leave the key out and put the address of the account into the same name followed by __accountEndpoint")
		err := connectionstring.CheckKey(key)
		s.refuse(err != nil, keyPart, fmt.Sprint(err))
		return c, s.err
	}
	c.Identity, c.TokenScope, c.ResourceID = s.identity(), scope, s.field("resourceId")
	resource, whole := strings.CutSuffix(scope, "/.default")
	_, err = parseEndpoint(resource, "https", "http")
	s.refuse(scope != "" && (!whole || err != nil), "__tokenScope", "is not the scope of a token; allowed is https://HOST/.default, such as https://cosmos.azure.com/.default, or leave it out")
	s.refuse(c.ResourceID != "" && !accountID.MatchString(c.ResourceID), "__resourceId", "is not the resource id of an account; allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/NAME")
	return c, s.err
}
