package servicebus

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// boundedIdentity bounds the time of getting a token: the SDK asks for one with a context that never ends.
// The bound is below that of a try, so that a slow token is not taken for a slow broker.
type boundedIdentity struct {
	azcore.TokenCredential
	timeout time.Duration
}

func (i boundedIdentity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	token, err := i.TokenCredential.GetToken(ctx, o)
	if err != nil {
		return token, tokenError{err}
	}
	return token, nil
}

// tokenError is a failure to get a token for the identity.
type tokenError struct{ err error }

func (e tokenError) Error() string { return e.err.Error() }
func (e tokenError) Unwrap() error { return e.err }

// NonRetriable marks the error for the SDK, which would otherwise replace it by one about a lost connection.
func (e tokenError) NonRetriable() {}
