package demo_test

import (
	"os"
	"slices"
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/demo"
)

func TestTheSettingsAreOnesThatFeedscaleTakes(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	c, err := config.Read(config.Input{Environ: w.Environ(), ReadFile: os.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	var configured, running []string
	for _, p := range c.Processors {
		configured = append(configured, p.Name)
		if p.ContainerID != p.Name {
			t.Errorf("processor %s watches container %s, want the one of its name", p.Name, p.ContainerID)
		}
		if !p.StartFrom.Beginning {
			t.Errorf("processor %s starts from %v, and its workers from the beginning", p.Name, p.StartFrom)
		}
	}
	for _, s := range w.Snapshot() {
		running = append(running, s.Name)
	}
	if want := []string{"orders", "payments", "audit"}; !slices.Equal(configured, want) || !slices.Equal(running, want) {
		t.Errorf("processors %q are configured and %q run, want %q", configured, running, want)
	}
	if c.Settings.Events.Queue == "" {
		t.Error("the events do not go to the queue")
	}
}

func TestCloseRemovesTheStateOfFeedscale(t *testing.T) {
	t.Parallel()
	w := start(t, demo.Options{})
	c, err := config.Read(config.Input{Environ: w.Environ(), ReadFile: os.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	path := c.Settings.State.BoltPath
	if err := os.WriteFile(path, []byte("state"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("got %v, want the file gone", err)
	}
}
