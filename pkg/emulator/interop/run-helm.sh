#!/bin/sh
# Holds infra/helm/feedscale against Helm's own linter and engine, and what it renders against the
# types of Kubernetes. Arguments go to `go test`: -update writes infra/kubernetes/feedscale.yaml
# anew. Needs Go; the first run needs the Go module proxy and compiles a part of Helm, which takes
# some minutes.
set -eu

cd "$(dirname "$0")/helm"
exec go test -count 1 -timeout 20m . "$@"
