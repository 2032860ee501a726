//go:build handler

package main

import (
	"errors"
	"log/slog"

	"github.com/feedscale/feedscale/pkg/actions"
)

// newKubernetes refuses: the handler that is deployed to Azure Functions goes
// without client-go (decision 0010).
func newKubernetes(_, _ string, _ *slog.Logger) (actions.Action, error) {
	return nil, errors.New("--action: this executable is the handler of a function app and has no action kubernetes; allowed are stdout, webhook and containerapp here, or build the whole one with 'go build -o feedscale ./functions'")
}
