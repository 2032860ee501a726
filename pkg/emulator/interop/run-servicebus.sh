#!/bin/sh
# Runs the official Python and Java clients against the Service Bus stand-in, in plain and under TLS. (The Go and the JavaScript
# clients run in the Go tests.) Usage: run-servicebus.sh [python|java]... Without arguments both run.
# Needs Go, and per client Python 3 with venv, or a JDK of version 17 or later with Maven; the first run needs package registries.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/feedscale/interop-servicebus"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"

need() {
	command -v "$1" >/dev/null || { echo "run-servicebus.sh: $1 is missing; install $2 and run this again" >&2; exit 2; }
}

# both COMMAND...: the command against a plain stand-in, then against one under TLS.
both() {
	echo "== $1 client, plain"; shift
	"$work/standin" "$@"
	echo "== under TLS"
	"$work/standin" -tls "$work" "$@"
}

python() {
	need python3 "Python 3"
	venv="$cache/python-$(cksum <"$here/servicebus/python/requirements.txt" | cut -d' ' -f1)"
	if [ ! -x "$venv/bin/python" ] || [ ! -e "$venv/complete" ]; then
		python3 -m venv "$venv"
		"$venv/bin/python" -m pip install --quiet --requirement "$here/servicebus/python/requirements.txt"
		touch "$venv/complete"
	fi
	both Python "$venv/bin/python" "$here/servicebus/python/client.py"
}

java_client() {
	need java "a JDK of version 17 or later"
	need keytool "a JDK of version 17 or later"
	need mvn "Maven"
	classpath="$cache/java-$(cksum <"$here/servicebus/java/pom.xml" | cut -d' ' -f1)"
	[ -s "$classpath" ] || mvn --quiet --batch-mode --file "$here/servicebus/java/pom.xml" \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile="$classpath"
	# The JVM trusts a key store, not a file, so the certificate is imported between the start of the stand-in and the client's.
	cat >"$work/java-client" <<-EOF
		#!/bin/sh
		set -eu
		if [ \$# -gt 1 ]; then
			rm -f "$work/trusted.jks"
			keytool -importcert -noprompt -alias standin -file "\$3" -keystore "$work/trusted.jks" -storepass changeit 2>/dev/null
			exec java -Djavax.net.ssl.trustStore="$work/trusted.jks" -Djavax.net.ssl.trustStorePassword=changeit -cp "$(cat "$classpath")" "$here/servicebus/java/Client.java" "\$@"
		fi
		exec java -cp "$(cat "$classpath")" "$here/servicebus/java/Client.java" "\$@"
	EOF
	chmod +x "$work/java-client"
	both Java "$work/java-client"
}

need go Go
(cd "$here" && go build -o "$work/standin" ./servicebus)
[ $# -gt 0 ] || set -- python java
for client in "$@"; do
	case "$client" in
	python) python ;;
	java) java_client ;;
	*) echo "run-servicebus.sh: no client $client; there are python and java" >&2; exit 2 ;;
	esac
done
