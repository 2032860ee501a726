package servicebus

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// boundedIdentity bounds the time a token may take: the SDK asks for one with
// a context that never ends. It takes less than a try, whose error would
// otherwise blame the broker.
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

// NonRetriable marks the error for the SDK, which would otherwise hide it in one that says that the
// connection was lost.
func (e tokenError) NonRetriable() {}
