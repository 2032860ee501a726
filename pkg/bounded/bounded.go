// Package bounded bounds what comes from outside: the answers of services, the files that a command line
// names, and the names that are remembered. Anything longer is an error (docs/security.md has every limit).
//
// It knows no service. Start with [NewClient].
//
// The package is internal to the program: its API may change in any release.
package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

const (
	// maxBody is the most of an answer that is read, in bytes and decompressed. The longest answers that
	// are asked for are pages of Cosmos DB and of Table storage, of 4 MiB.
	maxBody = 32 << 20
	// maxHeader is the most that the headers of an answer may take, in bytes.
	maxHeader = 256 << 10
	// maxFile is the most that a file may have, in bytes.
	maxFile = 64 << 20
)

// TooLongError is the error of what is longer than it may be.
type TooLongError struct{ Most int64 } // bytes

// Error names the limit.
func (e TooLongError) Error() string { return fmt.Sprintf("it is longer than %d MiB", e.Most>>20) }

// NonRetriable keeps azcore from asking again.
func (TooLongError) NonRetriable() {}

// NewClient returns a Client with bounded Answers of a copy of http.DefaultTransport.
func NewClient() *http.Client {
	return Client(Answers(http.DefaultTransport.(*http.Transport).Clone()))
}

// Client returns a client that follows no redirect: Go's client would send headers with keys and tokens to
// any other host.
func Client(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// Answers bounds the headers of the answers that t gets to 256 KiB, and returns Bodies(t).
func Answers(t *http.Transport) http.RoundTripper {
	t.MaxResponseHeaderBytes = maxHeader
	return Bodies(t)
}

// Bodies returns a transport with the answers of next, which fail with a TooLongError beyond 32 MiB. Each request
// gets a body of its own: azcore sends the same one again with the next try, and next may still read it then, since a
// transport may close a body after it has returned.
func Bodies(next http.RoundTripper) http.RoundTripper { return bodies{next} }

type bodies struct{ next http.RoundTripper }

// RoundTrip asks next.
func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		text, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		r = r.WithContext(r.Context()) // a transport must not change its request
		r.Body = io.NopCloser(bytes.NewReader(text))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	}
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = body{http.MaxBytesReader(nil, answer.Body, maxBody)}
	}
	return answer, err
}

// body is a body with an end, beyond which it says that it is too long.
type body struct{ io.ReadCloser }

// Read reads up to that end.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		err = TooLongError{maxBody}
	}
	return n, err
}

// ReadFile reads a file as os.ReadFile does, and fails with a TooLongError beyond 64 MiB: a name may be that
// of a device.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(name, file)
}

// Read reads to the end, with the limit of ReadFile. The error has the name.
func Read(name string, from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, &os.PathError{Op: "read", Path: name, Err: TooLongError{maxFile}}
	}
	return text, err
}
