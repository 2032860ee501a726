#!/bin/sh
# Runs the programs of docs/stand-ins.md and of snippets/programs as they stand, with a key and with DefaultAzureCredential.
# Arguments go to `go test`. Needs Go, Node.js 20, Python 3 with venv, a JDK of version 17 or later
# with Maven, and port 5671; the first run needs package registries.
set -eu

here=$(cd "$(dirname "$0")/snippets" && pwd)
for program in go npm python3 java keytool mvn; do
	command -v $program >/dev/null || { echo "run-snippets.sh: $program is missing; install it and run this again" >&2; exit 2; }
done
cache="${XDG_CACHE_HOME:-$HOME/.cache}/feedscale/snippets-$(cat "$here"/js/package-lock.json "$here"/python/requirements.txt "$here"/java/pom.xml | cksum | cut -d' ' -f1)"
if [ ! -e "$cache/complete" ]; then
	mkdir -p "$cache"
	cp "$here"/js/* "$cache"
	(cd "$cache" && npm ci --no-audit --no-fund --loglevel error)
	python3 -m venv "$cache/python"
	"$cache/python/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/python/requirements.txt"
	mvn --quiet --batch-mode --file "$here/java/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile="$cache/classpath"
	touch "$cache/complete"
fi
cd "$here"
exec go test -count 1 -timeout 20m -tags snippets "$@" . -node "$cache" -python "$cache/python/bin/python" -classpath "$cache/classpath"
