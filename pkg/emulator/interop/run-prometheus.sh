#!/bin/sh
# Holds the rules and the dashboard of infra/helm/feedscale against Prometheus' own parser and engine. Arguments go to `go test`. Needs Go;
# the first run needs the Go module proxy and compiles a part of Prometheus, which takes some minutes.
set -eu

cd "$(dirname "$0")/prometheus"
exec go test -count 1 -timeout 20m "$@" .
