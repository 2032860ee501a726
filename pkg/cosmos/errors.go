package cosmos

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// subject names what a request was about, for messages.
type subject struct {
	part      string // such as "the leases in"; "" for the container itself
	container Container
}

func (s subject) String() string {
	return strings.TrimSpace(s.part + " container " + s.container.String())
}

// refused turns an answer that is an error into a sentence that says why and what to do.
func (a *Account) refused(s subject, r *http.Response) error {
	return a.sentence(s, r.StatusCode, substatus(r))
}

// substatusDisabledAuthentication comes with a 403 where the account does not accept this kind of
// credential: a key where only identities are allowed.
const substatusDisabledAuthentication = 5202

func (a *Account) sentence(s subject, status, substatus int) error {
	code := fmt.Sprintf("(%d)", status)
	if substatus != 0 {
		code = fmt.Sprintf("(%d/%d)", status, substatus)
	}
	identity := a.options.Key == ""
	switch {
	case status == http.StatusUnauthorized && identity,
		status == http.StatusForbidden && identity:
		return fmt.Errorf("the identity may not read %s in account %s %s: give it the role Cosmos DB Built-in Data Reader there (az cosmosdb sql role assignment create), and check that the account's firewall lets this network in", s, a.host, code)
	case status == http.StatusForbidden && substatus == substatusDisabledAuthentication:
		return fmt.Errorf("account %s does not accept keys %s: set %s__accountEndpoint in place of the key, to use an identity", a.host, code, a.options.Setting)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("account %s refuses the key in setting %s %s: put a valid key there (az cosmosdb keys list)", a.host, a.options.Setting, code)
	case status == http.StatusForbidden:
		return fmt.Errorf("account %s forbids reading %s %s: let this network through the account's firewall, and check that this machine's clock is right", a.host, s, code)
	case status == http.StatusNotFound && changefeed.OutcomeOf(status, substatus) == changefeed.Refused:
		return fmt.Errorf("container %s does not exist in account %s %s: correct databaseId and containerId", s.container, a.host, code)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("account %s throttles the reading of %s %s: raise its throughput, or poll less often", a.host, s, code)
	case status >= 500 || status == http.StatusGone || changefeed.OutcomeOf(status, substatus) == changefeed.Transient:
		return fmt.Errorf("account %s could not answer for %s %s: the next poll tries again; if it stays so, look at the health of the account", a.host, s, code)
	default:
		return fmt.Errorf("account %s rejects the request for %s %s: check databaseId, containerId and leaseContainerId, and that the leases there are those of this container", a.host, s, code)
	}
}

// failed turns the error of a request into a sentence that says why there was no answer and what to
// do. Of the cause it wraps context.Canceled or context.DeadlineExceeded alone.
func (a *Account) failed(s subject, t *tally, err error) error {
	var (
		response    *azcore.ResponseError
		unavailable interface{ NonRetriable() }
		auth        *azidentity.AuthenticationFailedError
		dns         *net.DNSError
		authority   x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
	)
	endpoint := fmt.Sprintf("check the endpoint in setting %s, and the network", a.options.Setting)
	switch {
	case errors.As(err, &response):
		return a.sentence(s, response.StatusCode, substatus(response.RawResponse))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if t.spent().Delay > 0 {
			return fmt.Errorf("the budget of %g RU/s for account %s left no time for %s: raise FEEDSCALE_RU_BUDGET, or poll less often: %w", a.options.Budget, a.host, s, ctxError(err))
		}
		if status, substatus := t.last(); status >= 400 {
			return fmt.Errorf("%w; %w", a.sentence(s, status, substatus), ctxError(err))
		}
		return fmt.Errorf("account %s did not answer for %s in time: the next poll tries again; %s: %w", a.host, s, endpoint, ctxError(err))
	case errors.As(err, &dns):
		return fmt.Errorf("the host of account %s cannot be found: %s", a.host, endpoint)
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return fmt.Errorf("account %s shows a certificate that this machine does not trust: %s", a.host, endpoint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("account %s cannot be reached, the connection is refused: %s", a.host, endpoint)
	case errors.As(err, &auth), errors.As(err, &unavailable) && a.options.Key == "":
		return fmt.Errorf("there is no token for account %s: switch on the managed identity of this app, or locally sign in with az login", a.host)
	default:
		return fmt.Errorf("account %s cannot be reached for %s: %s", a.host, s, endpoint)
	}
}

// ctxError returns the context's own error, without what a library wrapped around it.
func ctxError(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

// retriable reports whether a request without an answer is worth another try. Where the host does
// not exist, the certificate is not trusted or there is no token, it is not.
func retriable(err error) bool {
	var (
		dns          *net.DNSError
		nonRetriable interface{ NonRetriable() }
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &nonRetriable), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	default:
		return true
	}
}
