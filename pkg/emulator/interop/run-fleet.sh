#!/bin/sh
# Runs hosts of Java's change feed processor and of pkg/changefeedprocessor on one lease container:
# run-fleet.sh [ROUNDS [SEED]], 20 and 1 by default, for Java's PK and EPK leases each.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedscale
mkdir -p "$cache"
for tool in go java keytool mvn; do
    command -v "$tool" >/dev/null || { echo "run-fleet.sh: $tool is needed: install it" >&2; exit 1; }
done
(cd "$here" && go build -o "$cache/interop-fleet" ./fleet)
target="$cache/cosmos-java"
mvn --quiet --batch-mode -Dstyle.color=never -f "$here/cosmos/java/pom.xml" -Doutput="$target" compile dependency:copy-dependencies
for format in pk epk; do
    echo "== $format"
    "$cache/interop-fleet" -rounds "${1:-20}" -seed "${2:-1}" "$format" sh -c '
        store=$(dirname "$COSMOS_CA")/trust.p12
        [ -f "$store" ] || keytool -importcert -noprompt -alias cosmos -file "$COSMOS_CA" -keystore "$store" -storetype PKCS12 -storepass changeit >/dev/null 2>&1
        exec java -Xmx256m -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStore="$store" -Djavax.net.ssl.trustStorePassword=changeit \
            -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$1/classes:$1/dependency/*" Fleet "$2"
    ' sh "$target"
done
