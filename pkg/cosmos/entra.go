package cosmos

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// DefaultScope is the scope of a token in a tenant that has no application of the account's own name.
// KEDA's scaler asks for it in every cloud (kedacore/keda, azure/cloud_config.go).
const DefaultScope = "https://cosmos.azure.com/.default"

// OwnScope is the scope of a token for an account by default: its own endpoint. A dedicated gateway
// (ACCOUNT.sqlx.cosmos.azure.com) has the scope of its account.
func OwnScope(endpoint *url.URL) string {
	host := endpoint.Hostname()
	if account, ok := strings.CutSuffix(host, ".sqlx.cosmos.azure.com"); ok {
		host = account + ".documents.azure.com"
	}
	return endpoint.Scheme + "://" + host + "/.default"
}

// unknownResource is Entra's code for a scope that no application in the tenant has
// (https://learn.microsoft.com/entra/identity-platform/reference-error-codes).
const unknownResource = "AADSTS500011"

// scoped asks an identity for a token with the scope of an account, and with DefaultScope if the tenant
// does not know that.
type scoped struct {
	azcore.TokenCredential
	own   string
	fixed bool        // own comes from a setting: nothing else is tried
	other atomic.Bool // DefaultScope is what works
}

func newScoped(o Options, endpoint *url.URL) *scoped {
	return &scoped{TokenCredential: o.Credential, own: cmp.Or(o.Scope, OwnScope(endpoint)), fixed: o.Scope != ""}
}

// GetToken ignores the scopes that it is asked for: they are always the same. Its error is a tokenError.
func (s *scoped) GetToken(ctx context.Context, o policy.TokenRequestOptions) (token azcore.AccessToken, err error) {
	if o.Scopes = []string{s.own}; !s.other.Load() {
		token, err = s.TokenCredential.GetToken(ctx, o)
		if err == nil {
			return token, nil
		}
		if s.fixed || !strings.Contains(err.Error(), unknownResource) {
			return token, tokenError{err}
		}
	}
	o.Scopes[0] = DefaultScope
	token, otherErr := s.TokenCredential.GetToken(ctx, o)
	if otherErr == nil {
		s.other.Store(true)
		return token, nil
	}
	return token, tokenError{cmp.Or(err, otherErr)}
}
