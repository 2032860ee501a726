package events_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestStdoutWritesOneEventPerLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var publisher events.Publisher = events.NewStdout(&out)
	event := encode(t, ordersEvent())
	indented := strings.Replace(string(event), ",", ",\n  ", 3)
	for _, body := range []string{string(event), indented} {
		if err := publisher.Publish(t.Context(), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := string(event) + "\n" + string(event) + "\n"; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

// chunks counts writes: a line that took two could be torn by another process
// that writes to the same stream.
type chunks struct {
	mu    sync.Mutex
	lines []string
}

func (c *chunks) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, string(p))
	return len(p), nil
}

func TestStdoutWritesWholeLinesWhenManyPublish(t *testing.T) {
	t.Parallel()
	var out chunks
	publisher := events.NewStdout(&out)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := publisher.Publish(context.Background(), fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(out.lines) != 50 {
		t.Errorf("got %d writes, want 50", len(out.lines))
	}
	for _, line := range out.lines {
		if !strings.HasPrefix(line, `{"n":`) || !strings.HasSuffix(line, "}\n") {
			t.Errorf("torn line %q", line)
		}
	}
}

type brokenPipe struct{}

var errBrokenPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBrokenPipe }

func TestStdoutFails(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		body string
		want error
	}{
		{"where the stream is broken", t.Context(), `{}`, errBrokenPipe},
		{"where the context has ended", ended, `{}`, context.Canceled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := events.NewStdout(brokenPipe{}).Publish(c.ctx, []byte(c.body))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	if err := events.NewStdout(&bytes.Buffer{}).Publish(t.Context(), []byte("no JSON")); err == nil {
		t.Error("what is not JSON was written")
	}
}
