#!/bin/sh
# Compiles and lints the templates of infra/ (infra/bicepconfig.json), and compares them with the
# output of the formatter. It also compares the expansion of the sample parameters with
# main.snapshot.json, which it creates if there is none.
# Usage: compile.sh BICEP, where BICEP is the Bicep CLI. A warning is a failure. `make infra` runs it.
set -eu

bicep=$1
cd "$(dirname "$0")/.."
command -v "$bicep" >/dev/null || {
	cat >&2 <<'EOF'
The Bicep CLI is missing. With the Azure CLI:
  az bicep install && make infra BICEP="$HOME/.azure/bin/bicep"
Without it (bicep-osx-arm64 and others beside bicep-linux-x64, see https://aka.ms/bicep-install):
  curl -Lo bicep https://github.com/Azure/bicep/releases/latest/download/bicep-linux-x64 && chmod +x bicep && make infra BICEP="$PWD/bicep"
EOF
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# quiet WHAT COMMAND...: fails if the command fails or prints a diagnostic to standard error.
quiet() {
	what=$1
	shift
	if "$@" >/dev/null 2>"$work/diagnostics" && [ ! -s "$work/diagnostics" ]; then
		return
	fi
	echo "$what:" >&2
	cat "$work/diagnostics" >&2
	failed=1
}

# Any account works, since nothing is deployed. Other variables are unset, so that the expansion is the
# same on every machine.
unset AZURE_ENV_NAME GITHUB_ACTIONS
COSMOS_ACCOUNT_ID=/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop
export COSMOS_ACCOUNT_ID

quiet main.bicep "$bicep" build main.bicep --stdout
quiet containerapps/main.bicep "$bicep" build containerapps/main.bicep --stdout
quiet containerapps/signalqueue.bicep "$bicep" build containerapps/signalqueue.bicep --stdout
quiet main.bicepparam "$bicep" build-params main.bicepparam --stdout
for file in main.bicep main.bicepparam containerapps/*.bicep modules/*.bicep modules/roles/*.bicep; do
	if ! "$bicep" format "$file" --stdout >"$work/formatted" || ! diff -u "$file" "$work/formatted" >&2; then
		echo "$file is not formatted: run $bicep format infra/$file" >&2
		failed=1
	fi
done
mode=validate
if [ ! -e main.snapshot.json ]; then
	mode=overwrite
	echo "infra/main.snapshot.json is new: commit it" >&2
fi
if ! "$bicep" snapshot main.bicepparam --mode $mode >"$work/diagnostics" 2>&1; then
	cat "$work/diagnostics" >&2
	echo "where that is meant: delete infra/main.snapshot.json and run make infra" >&2
	failed=1
fi
if [ "$failed" = 0 ]; then
	echo "infra/ compiles without a warning"
fi
exit "$failed"
