// Package lifeline is a transport that can be cut. Tests and the demo use it to let hosts of a
// change feed processor die as processes do.
//
// The package is internal to the program: its API may change in any release.
package lifeline

import (
	"context"
	"io"
	"net/http"
)

// Line is a transport for azcore. After Cut, running requests end, and nothing is sent any more.
type Line struct {
	base  http.RoundTripper
	alive context.Context
	cut   context.CancelFunc
}

// New returns a line over another transport. The caller must cut it in the end.
func New(base http.RoundTripper) *Line {
	l := &Line{base: base}
	l.alive, l.cut = context.WithCancel(context.Background())
	return l
}

// Cut cuts the line. A second call does nothing.
func (l *Line) Cut() { l.cut() }

// cutError is what a client gets; azcore does not try again.
type cutError struct{}

func (cutError) Error() string { return "the process was killed" }
func (cutError) NonRetriable() {}

// Do implements policy.Transporter of azcore.
func (l *Line) Do(request *http.Request) (*http.Response, error) {
	if l.alive.Err() != nil {
		return nil, cutError{} // AfterFunc below ends a request from another goroutine: it may be sent before
	}
	ctx, end := context.WithCancel(request.Context())
	stop := context.AfterFunc(l.alive, end)
	response, err := l.base.RoundTrip(request.WithContext(ctx))
	if l.alive.Err() != nil {
		if err == nil {
			_ = response.Body.Close() // nobody gets it
		}
		err = cutError{}
	}
	if err != nil {
		stop()
		end()
		return nil, err
	}
	response.Body = &body{response.Body, func() { stop(); end() }}
	return response, nil
}

type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
