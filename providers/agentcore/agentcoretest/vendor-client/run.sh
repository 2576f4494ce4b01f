#!/bin/sh
# Drives the emulated AgentCore Code Interpreter with the vendor's own client, which
# npm installs into a temporary directory. Needs go, node and npm.
set -eu
cd "$(dirname "$0")"
here=$PWD
tmp=$(mktemp -d)
server=
finish() {
	exec 3>&- || true
	[ -z "$server" ] || wait "$server" || true
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cp package.json check.mjs "$tmp"
(cd "$tmp" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >&2)
(cd "$here/../serve" && go build -o "$tmp/serve" .)

# The server lives as long as its standard input is open.
mkfifo "$tmp/stdin"
"$tmp/serve" <"$tmp/stdin" >"$tmp/address" &
server=$!
exec 3>"$tmp/stdin"
n=0
until [ -s "$tmp/address" ]; do
	n=$((n + 1))
	[ $n -lt 100 ] || { echo "the emulator did not start" >&2; exit 1; }
	sleep 0.1
done
value() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$tmp/address"; }
cd "$tmp"
# Nothing but these tells the client where to go and who it is.
env -u AWS_PROFILE -u AWS_SESSION_TOKEN -u AWS_ENDPOINT_URL \
	AWS_ENDPOINT_URL_BEDROCK_AGENTCORE="$(value url)" AWS_REGION="$(value region)" \
	AWS_ACCESS_KEY_ID="$(value key)" AWS_SECRET_ACCESS_KEY="$(value secret)" \
	AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null \
	node check.mjs 3>&-
