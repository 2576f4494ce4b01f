#!/bin/sh
# Drives an emulated service with the vendor's own client: vendor-client.sh NAME.
# npm installs the client, pinned in providers/NAME/NAMEtest/vendor-client, into a
# temporary directory; its check.mjs finds the service's address and keys, as
# serve prints them, in the variable EMULATOR. Needs go, node and npm.
set -eu
cd "$(dirname "$0")/../../$1/$1test"
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

echo "$1: $(sed -n 's/^ *"\(.*\)": "\([0-9.]*\)",*$/\1 \2/p' vendor-client/package.json | paste -sd, -)"
cp vendor-client/* "$tmp"
(cd "$tmp" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error >&2)
(cd "$here/serve" && go build -o "$tmp/serve" .)

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
EMULATOR=$(cat "$tmp/address")
export EMULATOR
cd "$tmp"
limit=
! command -v timeout >/dev/null || limit="timeout 600" # a client that waits for ever fails
$limit node check.mjs 3>&-
