package check

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/pkg/config"
)

// principal is the object id of an identity, to which roles are assigned; "" = its token does not say.
type principal string

// signIn adds whose the identity is that proves a connection, by a token for a scope. credential is the connection's
// own; nil if it has none. The token is shown to nobody. What it says is known once the step was tried.
func (c *checker) signIn(s *section, setting string, usesIdentity bool, i config.Identity, credential azcore.TokenCredential, scope string) *principal {
	who := new(principal)
	s.steps = append(s.steps, step{check: "identity", anyway: true, try: func(ctx context.Context) (f finding) {
		*who, f = c.identify(ctx, setting, usesIdentity, i, credential, scope)
		return f
	}})
	return who
}

// identityFix is what to do about an identity that gives no token.
const identityFix = "give this process the identity: az login on your own machine, az functionapp identity assign or " +
	"az containerapp identity assign in Azure, az identity federated-credential create for a pod, az ad app credential reset for a service principal"

func (c *checker) identify(ctx context.Context, setting string, usesIdentity bool, i config.Identity, credential azcore.TokenCredential, scope string) (who principal, f finding) {
	if !usesIdentity {
		return who, notTried("setting %s holds a key: no token is needed", setting)
	}
	if credential == nil {
		var err error
		if credential, err = c.connections.Credential(i); err != nil {
			return who, bad(identityFix, "the identity of setting %s cannot be used: its environment is not there", setting)
		}
	}
	token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return who, bad(identityFix, "the identity of setting %s gives no token for %s%s", setting, scope, tokenReason(ctx, err))
	}
	who = principalOf(token.Token)
	return who, good("the identity of setting %s has the object id %s", setting, cmp.Or(who, "unknown"))
}

// tokenReason is what may be told of a failure: an error of azidentity repeats whole answers.
func tokenReason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return " in time"
	}
	if code := regexp.MustCompile(`AADSTS[0-9]+`).FindString(err.Error()); code != "" {
		return " (" + code + ")"
	}
	if refused := (*azidentity.AuthenticationFailedError)(nil); errors.As(err, &refused) && refused.RawResponse != nil {
		return ": " + refused.RawResponse.Status
	}
	return ""
}

var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// principalOf reads a token unchecked: the service checks it.
func principalOf(token string) principal {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Object string `json:"oid"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || !guid.MatchString(claims.Object) {
		return ""
	}
	return principal(claims.Object)
}
