package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
)

func TestSecretDoesNotShowHoweverItIsPrinted(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret(testKey)
	connection := config.CosmosConnection{Setting: "COSMOS", Key: secret}
	hidden := struct{ connection config.CosmosConnection }{connection} // fmt asks unexported fields no String
	var out bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{secret, &secret, connection, &connection, hidden, []config.Secret{secret}, map[string]any{"key": secret}} {
			fmt.Fprintf(&out, format+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("connected", "secret", secret, "connection", connection, "hidden", hidden)
	}
	if err := json.NewEncoder(&out).Encode(connection); err != nil {
		t.Fatal(err)
	}
	for _, spelled := range []string{testKey[:8], fmt.Sprintf("%x", testKey[:8])} {
		if strings.Contains(out.String(), spelled) {
			t.Errorf("the secret shows:\n%s", out.String())
		}
	}
}

func TestSecretIsItsText(t *testing.T) {
	t.Parallel()
	if got := config.NewSecret(testKey).Reveal(); got != testKey {
		t.Errorf("got %q, want %q", got, testKey)
	}
	if got := config.NewSecret("a"); got != config.NewSecret("a") {
		t.Error("secrets of one text differ")
	}
	if config.NewSecret("a") == config.NewSecret("b") {
		t.Error("secrets of two texts are equal")
	}
	if zero := config.NewSecret(""); !zero.IsZero() || zero.Reveal() != "" || zero.String() != "" {
		t.Errorf("the secret of nothing is not zero: %#v", zero)
	}
}
