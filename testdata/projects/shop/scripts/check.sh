#!/bin/sh
# Checks the project's files. Needs no more than a POSIX shell and utilities.
cd "$(dirname "$0")/.." || exit 2
failed=0

fail() {
	echo "FAIL $1" >&2
	failed=$((failed + 1))
}

# SSH must not be open to the world.
if awk '
	/ingress[ \t]*{/ { inside = 1; ssh = 0; open = 0 }
	inside && /from_port[ \t]*=[ \t]*22$/ { ssh = 1 }
	inside && /0\.0\.0\.0\/0/ { open = 1 }
	inside && /^[ \t]*}/ { if (ssh && open) bad = 1; inside = 0 }
	END { exit !bad }
' terraform/*.tf; then
	fail "terraform: SSH is open to 0.0.0.0/0"
else
	echo "ok   terraform: SSH is not open to the world"
fi

# Images must be pinned to the released version.
version=$(cat VERSION)
for f in k8s/*.yaml; do
	for image in $(sed -n 's/^ *image: *//p' "$f"); do
		case $image in
		*:"$version") echo "ok   $f: $image" ;;
		*) fail "$f: $image is not pinned to version $version" ;;
		esac
	done
done

[ "$failed" -eq 0 ] || { echo "$failed checks failed" >&2; exit 1; }
echo "all checks passed"
