#!/bin/sh
# Holds the windows, policies and tolerance of a decision (docs/decide.md, step 9) against the HorizontalPodAutoscaler's own
# controller. Usage: run-hpa.sh [-polls N] [-seed N] [-one]. Needs Go; the first run needs the Go module proxy and compiles
# Kubernetes' controller, which takes some minutes.
set -eu

cd "$(dirname "$0")/hpa"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A copy, which Go may complete: what feedscale itself requires changes more often than this test.
cp go.mod go.sum "$work"
go test -mod=mod -modfile "$work/go.mod" -count 1 -timeout 30m -v . "$@"
