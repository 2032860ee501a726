package testworld

import (
	"encoding/json"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/freeport"
)

// Must fails the test at once.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FreeAddress returns an address of this machine for a program that is started later.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freeport.Find()
	Must(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Times of waiting.
const (
	// Deadline is how long a test waits for what must come. It ends a test that hangs; a machine
	// that has twelve other things to do comes to it in time.
	Deadline = 5 * time.Minute
	// Busy is what such a machine may take on top of a time that the program promises.
	Busy      = 20 * time.Second
	lookEvery = 5 * time.Millisecond
)

// Eventually waits until something holds that others bring about, and fails the test where it does
// not within the deadline.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	late := time.After(Deadline)
	for !holds() {
		select {
		case <-looks.C:
		case <-late:
			t.Fatalf("never came: %s", what)
		}
	}
}

// Came returns what comes from a channel, or its zero value once that is closed, and fails the test
// where nothing does within the deadline.
func Came[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Deadline):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

// Clock is a time that only the test moves. It may be read from many goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock that stands at a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time on.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// Set moves the time, either way.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Decode reads JSON.
func Decode[T any](t testing.TB, text []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// Canonical is JSON with its fields in the order of their names.
func Canonical(t testing.TB, text []byte) string {
	t.Helper()
	ordered, err := json.Marshal(Decode[any](t, text))
	Must(t, err)
	return string(ordered)
}
