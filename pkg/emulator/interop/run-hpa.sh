#!/bin/sh
# Holds the windows, policies and tolerance of a decision (docs/decide.md, step 9) against the HorizontalPodAutoscaler's own
# controller. Usage: run-hpa.sh [-polls N] [-seed N] [-one]. Needs Go; the first run needs the Go module proxy and compiles
# Kubernetes' controller, which takes some minutes.
set -eu

cd "$(dirname "$0")/hpa"
exec go test -count 1 -timeout 30m -v . "$@"
