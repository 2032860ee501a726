#!/bin/sh
# Runs official Cosmos DB clients of other languages against the stand-in: run-cosmos.sh [python] [java], both by default.
# What they need is installed into the user's cache, outside the tree.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedscale
mkdir -p "$cache"

need() {
    command -v "$1" >/dev/null || { echo "run-cosmos.sh: $1 is needed for the $2 client: install it, or name the other clients as arguments" >&2; exit 1; }
}

need go "stand-in of every"
account="$cache/interop-cosmos"
(cd "$here" && go build -o "$account" ./cosmos)

run_python() {
    need python3 Python
    venv="$cache/cosmos-python"
    if ! cmp -s "$here/cosmos/python/requirements.txt" "$venv/requirements.txt"; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/cosmos/python/requirements.txt"
        cp "$here/cosmos/python/requirements.txt" "$venv/"
    fi
    for tls in "" -tls; do
        PYTHONWARNINGS=ignore "$account" $tls "$venv/bin/python" "$here/cosmos/python/client.py"
    done
}

run_java() {
    need java Java
    need keytool Java
    need mvn Java
    target="$cache/cosmos-java"
    mvn --quiet --batch-mode -Dstyle.color=never -f "$here/cosmos/java/pom.xml" -Doutput="$target" compile dependency:copy-dependencies
    "$account" -tls sh -c '
        store=$(dirname "$COSMOS_CA")/trust.p12
        keytool -importcert -noprompt -alias cosmos -file "$COSMOS_CA" -keystore "$store" -storetype PKCS12 -storepass changeit >/dev/null 2>&1
        exec java -Djavax.net.ssl.trustStore="$store" -Djavax.net.ssl.trustStorePassword=changeit \
            -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$1/classes:$1/dependency/*" Client
    ' sh "$target"
}

[ $# -gt 0 ] || set -- python java
for client in "$@"; do
    case $client in
    python | java) echo "== $client"; "run_$client" ;;
    *) echo "run-cosmos.sh: no client named $client; there are python and java" >&2; exit 2 ;;
    esac
done
