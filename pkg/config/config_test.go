package config_test

import (
	"errors"
	"strings"
	"testing"
	_ "time/tzdata" // so that time zones are those of the release on every machine

	"github.com/feedscale/feedscale/pkg/config"
)

// A key like that of an account, which mistakes must never show.
const testKey = "c2VjcmV0LWtleS1vZi10aGUtdGVzdHMtbm90LWEtcmVhbC1vbmU="

// lookupIn returns the lookup of an environment.
func lookupIn(settings map[string]string) func(string) (string, bool) {
	var environ []string
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	return config.Lookup(environ)
}

// testLookup knows two accounts.
func testLookup() func(string) (string, bool) {
	return lookupIn(map[string]string{
		"COSMOS":                  "AccountEndpoint=https://shop.documents.azure.com:443/;AccountKey=" + testKey + ";",
		"LEASES__accountEndpoint": "https://leases.documents.azure.com/",
	})
}

// load reads a document that has no mistake.
func load(t *testing.T, text string) []config.Processor {
	t.Helper()
	return loadDocument(t, text).Processors
}

// loadDocument reads a document that has no mistake, with its groups.
func loadDocument(t *testing.T, text string) config.Document {
	t.Helper()
	read, err := config.Load("processors.yaml", []byte(text), testLookup())
	if err != nil {
		t.Fatalf("unexpected mistakes:\n%v", err)
	}
	return read
}

// mistakes reads a document and returns what is wrong with it.
func mistakes(t *testing.T, text string) config.Mistakes {
	t.Helper()
	_, err := config.Load("processors.yaml", []byte(text), testLookup())
	return asMistakes(t, err)
}

func asMistakes(t *testing.T, err error) config.Mistakes {
	t.Helper()
	if err == nil {
		return nil
	}
	list, ok := errors.AsType[config.Mistakes](err)
	if !ok {
		t.Fatalf("got an error of type %T, want Mistakes: %v", err, err)
	}
	return list
}

// contains fails the test for each of parts that an error does not contain.
func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), testKey[:8]) {
		t.Errorf("error shows the key: %v", err)
	}
}
