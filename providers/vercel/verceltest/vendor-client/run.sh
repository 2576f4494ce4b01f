#!/bin/sh
# Drives the emulated Vercel Sandbox with the vendor's own client, which npm installs
# into a temporary directory. Needs go, node and npm.
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
VERCEL_CHECK=$(cat "$tmp/address")
export VERCEL_CHECK
# Without it the client would ask a person to sign in.
export CI=1
cd "$tmp"
node check.mjs 3>&-
