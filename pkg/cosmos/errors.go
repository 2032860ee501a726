package cosmos

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/pkg/bounded"
)

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
		long        bounded.TooLongError
	)
	if open, ok := errors.AsType[openError](err); ok {
		return fmt.Errorf("account %s was not asked to %s: %w", a.host, s.reading(), open)
	}
	endpoint := fmt.Sprintf("check the endpoint in setting %s, and the network", a.options.Setting)
	switch {
	case errors.As(err, &response):
		return a.refused(s, response.RawResponse)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if t.spent().Delay > 0 {
			return fmt.Errorf("the budget of %g RU/s for account %s left no time to %s: raise FEEDSCALE_RU_BUDGET, or poll less often: %w", a.options.Budget, a.host, s.reading(), ctxError(err))
		}
		if status, substatus := t.last(); status >= 400 {
			return fmt.Errorf("%w; %w", a.refusal(s, status, substatus), ctxError(err))
		}
		return fmt.Errorf("account %s did not answer in time, to %s: the next poll tries again; %s: %w", a.host, s.reading(), endpoint, ctxError(err))
	case errors.As(err, &long):
		return fmt.Errorf("account %s answers with more than any of the service's, to %s: %w; %s", a.host, s.reading(), long, endpoint)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the answer of account %s ends too early, to %s: the next poll tries again", a.host, s.reading())
	case errors.As(err, &dns):
		return fmt.Errorf("the host of account %s cannot be found: %s", a.host, endpoint)
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return fmt.Errorf("account %s shows a certificate that this machine does not trust: %s", a.host, endpoint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("account %s cannot be reached, the connection is refused: %s", a.host, endpoint)
	case errors.As(err, &auth), errors.As(err, &unavailable) && a.identity != nil:
		return fmt.Errorf("there is no token for account %s: switch on the managed identity of this app, or locally sign in with az login", a.host)
	default:
		return fmt.Errorf("account %s cannot be reached to %s: %s", a.host, s.reading(), endpoint)
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
