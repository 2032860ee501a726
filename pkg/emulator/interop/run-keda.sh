#!/bin/sh
# Runs KEDA's own scalers, scale handler and executor, from its Go module, against feedscale. Arguments go to `go test`, as in
# run-keda.sh -run Push -v. `run-keda.sh ways` instead measures how long each way of acting takes, in some five minutes, and prints the
# table of docs/act.md. Needs Go; the first run compiles KEDA, which takes some minutes.
set -eu

cd "$(dirname "$0")/keda"
command -v go >/dev/null || { echo "run-keda.sh: go is missing; install Go and run this again" >&2; exit 2; }
if [ "${1:-}" = ways ]; then
	table=$(mktemp)
	trap 'rm -f "$table"' EXIT
	go test -count 1 -timeout 30m -run '^TestEachWay' . -table "$table" >&2
	cat "$table"
	exit
fi
exec go test -count 1 -timeout 20m "$@" ./...
