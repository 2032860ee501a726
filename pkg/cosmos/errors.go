package cosmos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// lostAnswer is the error of a request that got no answer. It unwraps to nothing: azcosmos tries again after the
// errors of net, tls and io that it finds.
type lostAnswer struct{ cause error }

func (e lostAnswer) Error() string { return e.cause.Error() }

// tokenError says that an identity gave no token.
type tokenError struct{ error }

func (e tokenError) Unwrap() error { return e.error }

// describer turns what happened to a request into an error that says what to do.
type describer struct {
	host, setting string
	identity      bool    // rather than a key
	budget        float64 // request units a second
	scope         string  // resource id of the account if Azure Resource Manager is asked, rather than the account
}

// failed turns the error of a request into a sentence that says why there was no answer and what to do. Of
// the cause it wraps context.Canceled or context.DeadlineExceeded alone. An account that gives no answer is
// the Cause, in words that are the same for each request of an outage. No error stays none.
func (a describer) failed(c *call, err error) error {
	if err == nil {
		return nil
	}
	if gone, ok := errors.AsType[lostAnswer](err); ok {
		err = gone.cause
	}
	if refused, ok := errors.AsType[answerError](err); ok {
		return a.refused(c.about, refused.response)
	}
	do, who, check := c.about.reading(), "account "+a.host, fmt.Sprintf("check the endpoint in setting %s, and the network", a.setting)
	if a.scope != "" {
		who, check = "Azure Resource Manager", "check the network"
	}
	const again = "the next poll tries again"
	says, problem, remedy := "does not answer", who+" cannot be reached", check
	var ended error // of the context, without what a library wrapped around it
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, end) {
			ended = end
		}
	}
	refused := c.last != nil && c.last.StatusCode >= http.StatusBadRequest
	switch {
	case is[oddError](err):
		return fmt.Errorf("%s: the answer to %s is no whole page of the service's: %w: %s", who, do, err, again)
	case errors.Is(err, ErrBudget):
		return ErrBudget
	case ended != nil && c.Delay > 0:
		return fmt.Errorf("the budget of %g RU/s for %s left no time to %s: raise FEEDSCALE_RU_BUDGET, or poll less often: %w", a.budget, who, do, ended)
	case ended != nil && refused:
		return fmt.Errorf("%w; %w", a.refused(c.about, c.last), ended)
	case is[openError](err):
		problem, remedy = who+" was not asked", err.Error()
	case ended != nil:
		problem, remedy = who+" did not answer in time", again+"; "+check
	case is[bounded.TooLongError](err):
		problem = who + " answers with more than any of the service's"
	case errors.Is(err, io.ErrUnexpectedEOF):
		problem, remedy = who+" ended its answer too early", again
	case is[*net.DNSError](err):
		problem = "the host of " + who + " cannot be found"
	case is[*tls.CertificateVerificationError](err):
		says = "shows a certificate that is not trusted"
		problem = who + " " + says
	case is[tokenError](err):
		says, problem = "is asked without a token", "there is no token for "+who
		remedy = "switch on the managed identity of this app, or locally sign in with az login"
	}
	text := fmt.Errorf("%s, to %s: %s", problem, do, remedy)
	if ended != nil {
		text = fmt.Errorf("%w: %w", text, ended)
	}
	if ended == context.Canceled || refused || c.Delay > 0 {
		return text
	}
	return refusal.Unanswered(text, changefeed.Cause{Of: who, Says: says, Effect: effect, Remedy: "run feedscale check: it tries the name, the connection and the certificate"})
}

// ManagerErrors turns what Azure Resource Manager answers about the throughput of an account into errors that
// say what to do, as an Account does with its own answers.
type ManagerErrors struct {
	Account    string // its name
	Setting    string // name of the setting with the connection
	ResourceID string // of the account
}

func (m ManagerErrors) describer() describer {
	return describer{host: m.Account, setting: m.Setting, identity: true, scope: m.ResourceID}
}

// Failed describes the error of a request: a refusal if Azure Resource Manager answered, with the account's own
// message. If a change fails later, the status of its error is 200, and a code says what went wrong
// (https://github.com/pulumi/pulumi-azure-native/issues/4189).
func (m ManagerErrors) Failed(about Subject, err error) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil {
		return m.describer().failed(&call{about: about}, err)
	}
	if answer.ErrorCode == "PreconditionFailed" {
		answer.RawResponse.StatusCode = http.StatusPreconditionFailed
	}
	return m.describer().refused(about, answer.RawResponse)
}

// Changed says that somebody else replaced the throughput since it was read.
func (m ManagerErrors) Changed(about Subject) error { return m.describer().changed(about) }

// is reports whether an error of a type is in a chain of errors.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// retriable reports whether a request without an answer is worth another try. If the host does not exist, the
// certificate is not trusted or the answer is too long, it is not.
func retriable(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return false
	}
	return !is[*tls.CertificateVerificationError](err) && !is[bounded.TooLongError](err)
}

// isUnreachable reports whether a request failed before anything of the account could answer: its name,
// the connection, or TLS.
func isUnreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect") ||
		is[*net.DNSError](err) || is[*tls.CertificateVerificationError](err) || is[tls.RecordHeaderError](err)
}
