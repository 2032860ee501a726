package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
)

// serviceEndpoint is where a service is reached.
type serviceEndpoint struct {
	host    string // without a port
	port    string
	url     *url.URL // of a service that speaks HTTP; nil = AMQP
	tls     bool
	setting string // that names it, for advice
}

// httpEndpoint is the endpoint of a URL, which the configuration has checked.
func httpEndpoint(address, setting string) serviceEndpoint {
	u, err := url.Parse(address)
	if err != nil {
		u = new(url.URL)
	}
	secured := u.Scheme == "https"
	return serviceEndpoint{host: u.Hostname(), port: cmp.Or(u.Port(), usualPort[secured]), url: u, tls: secured, setting: setting}
}

// usualPort is that of HTTPS and of HTTP.
var usualPort = map[bool]string{true: "443", false: "80"}

// name is the host, with the port if it is not the usual one.
func (e serviceEndpoint) name() string {
	usual := usualPort[e.tls]
	if e.url == nil {
		usual = amqpsPort
	}
	if e.port == usual {
		return e.host
	}
	return net.JoinHostPort(e.host, e.port)
}

// reach adds whether the service can be found and reached, what certificate it shows, and whether its clock is that
// of this machine.
func (s *section) reach(e serviceEndpoint) {
	var (
		shown    *tls.ConnectionState
		ahead    *time.Duration
		tlsError error
	)
	s.try("dns", e.resolve)
	s.try("connection", func(ctx context.Context) finding {
		var err error
		if shown, ahead, err = e.connect(ctx); isTLS(err) {
			tlsError, err = err, nil
		}
		if err != nil {
			return e.unreached(err)
		}
		return good("port %s answers", e.port)
	})
	s.try("tls", func(context.Context) finding {
		switch {
		case tlsError != nil:
			return bad("correct the host and port in setting "+e.setting+", renew the certificate, or set SSL_CERT_FILE to a PEM file that holds that of its authority",
				"%v", reasonOf(tlsError))
		case shown == nil:
			return notTried("plain text, as stand-ins speak it: there is no certificate")
		}
		return good("%s, the certificate is trusted and valid until %s", tls.VersionName(shown.Version), shown.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly))
	})
	if e.url == nil {
		return // AMQP tells no time
	}
	s.steps = append(s.steps, step{check: "clock", beside: true, try: func(context.Context) finding {
		if ahead == nil {
			return notTried("the answer has no date")
		}
		return clockFinding(*ahead)
	}})
}

// resolve looks up the host.
func (e serviceEndpoint) resolve(ctx context.Context) finding {
	if proxy := e.proxy(); proxy != "" {
		return notTried("left to the proxy %s (HTTPS_PROXY, HTTP_PROXY)", proxy)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, e.host)
	if err != nil {
		return bad("correct the host in setting "+e.setting+", or link the private DNS zone of its private endpoint to this network",
			"the host %s cannot be found: %v", e.host, err)
	}
	return good("%s", strings.Join(addresses, ", "))
}

// proxy is the host of the proxy that requests go through, "" = none.
func (e serviceEndpoint) proxy() string {
	if e.url == nil {
		return ""
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: e.url})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Host
}

// connect connects as the clients do, and signs nothing. It returns what TLS shows, nil without TLS, and how far this
// machine's clock is ahead, below 0 if it is behind; nil if the service tells no time.
func (e serviceEndpoint) connect(ctx context.Context) (shown *tls.ConnectionState, ahead *time.Duration, err error) {
	if e.url == nil {
		dial := new(net.Dialer).DialContext
		if e.tls {
			dial = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext
		}
		connection, err := dial(ctx, "tcp", net.JoinHostPort(e.host, e.port))
		if err != nil {
			return nil, nil, err
		}
		defer connection.Close()
		if secured, ok := connection.(*tls.Conn); ok {
			shown = new(secured.ConnectionState())
		}
		return shown, nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	sent := time.Now()
	answer, err := bounded.Client(&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}).Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		ahead = new(sent.Add(time.Since(sent) / 2).Sub(date))
	}
	return answer.TLS, ahead, nil
}

// isTLS reports whether the port was reached and the TLS handshake failed.
func isTLS(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(tls.AlertError))
}

func (e serviceEndpoint) unreached(err error) finding {
	address := net.JoinHostPort(e.host, e.port)
	return bad("start what is to listen at "+address+", open it in the firewalls and security groups between, or correct setting "+e.setting,
		"%s cannot be reached at port %s: %v", e.host, e.port, reasonOf(err))
}

// reasonOf is an error without the URL that net/http puts in front.
func reasonOf(err error) error {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		return request.Err
	}
	return err
}

// maxSkew is what the clocks may differ by: the default of leaseExpiration, since leases expire by this machine's
// clock. Tokens fail at 5 minutes, signatures at 15. Ages follow the service's clock.
const maxSkew = time.Minute

func clockFinding(ahead time.Duration) finding {
	off, direction := ahead.Abs().Round(time.Second), "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	switch {
	case off > maxSkew:
		return bad("timedatectl set-ntp true", "this machine's clock is %s %s the service's: live owners pass for dead or dead ones for live, tokens fail at 5m, signatures at 15m", off, direction)
	case off > time.Second:
		return good("%s %s the service's", off, direction)
	}
	return good("as the service's")
}
