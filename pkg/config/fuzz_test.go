package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
)

// Whatever the document, it is either read, and then within the documented ranges, or refused with
// mistakes of one line each that do not show the settings.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/every-field.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(minimal))
	f.Add([]byte(`{"processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := config.Load("processors.yaml", text, testLookup())
		if err != nil {
			list, ok := errors.AsType[config.Mistakes](err)
			if !ok || len(list) == 0 {
				t.Fatalf("got %T, want mistakes: %v", err, err)
			}
			for _, mistake := range list {
				if line := mistake.String(); strings.ContainsAny(line, "\n\r") || strings.Contains(line, testKey) {
					t.Fatalf("a bad line: %q", line)
				}
			}
			return
		}
		processors := read.Processors
		if len(processors) == 0 {
			t.Fatal("no processors and no mistake")
		}
		names, groups := map[string]bool{}, map[string]bool{"": true}
		for _, g := range read.Groups {
			if g.Name == "" || names[g.Name] {
				t.Errorf("the name %q of a group is empty or not unique", g.Name)
			}
			names[g.Name], groups[g.Name] = true, true
		}
		for _, p := range processors {
			policy := p.Policy
			if !groups[p.Group] {
				t.Errorf("there is no group %q", p.Group)
			}
			if p.Name == "" || names[p.Name] {
				t.Errorf("the name %q is empty or not unique", p.Name)
			}
			names[p.Name] = true
			if p.Connection.Endpoint == "" || p.LeaseConnection.Endpoint == "" || p.AccountHost == "" || p.DatabaseID == "" || p.ContainerID == "" || p.LeaseDatabaseID == "" || p.LeaseContainerID == "" {
				t.Errorf("something is empty: %+v", p)
			}
			if policy.Threshold < 1 || policy.Activation < 0 || policy.Activation >= policy.Threshold {
				t.Errorf("threshold %d, activation %d", policy.Threshold, policy.Activation)
			}
			if policy.MinReplicas < 0 || policy.MaxReplicas != nil && (*policy.MaxReplicas < 1 || *policy.MaxReplicas < policy.MinReplicas) {
				t.Errorf("replicas %d to %v", policy.MinReplicas, policy.MaxReplicas)
			}
			for _, floor := range policy.Schedules {
				if floor.Location == nil || floor.DesiredReplicas < 1 || floor.Start.Next(time.Unix(0, 0)).IsZero() || floor.End.Next(time.Unix(0, 0)).IsZero() {
					t.Errorf("floor %+v", floor)
				}
			}
		}
	})
}
