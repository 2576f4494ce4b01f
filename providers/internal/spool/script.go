package spool

import "github.com/talkops-ai/talkops/providers/internal/posix"

// The script of a command is Begin, what a provider adds, Pump, a script that ends the
// process group named in the file $1, and Run. It runs the command "$@" with the
// private files $1.*, for at most $2 seconds (0: any time), with the input $3 and the
// outputs that $4 names; $5 is $2 of the script that ends it. It sends what the outputs
// hold while they grow. A second copy of the same command sends "!" and ends at once.
// It keeps the room of package posix; who deletes its files gives that back.
const (
	// Begin reads the arguments.
	Begin = `b=$1 limit=$2 input=$3 want=$4 how=$5
shift 5
d=${b%/*}
[ -d "$d" ] || mkdir -p -m 700 "$d"
mkdir "$b.l" 2>/dev/null || { echo !; exit 0; }
exec 3>&1 4>&2 >/dev/null 2>&1 </dev/null
` + posix.KeepRoom + `beat=0
`
	// Pump sends. Every $beat turns in which nothing came, unless that is 0, it sends an
	// empty line.
	Pump = `send() {
	n=$2
	[ -s "$1" ] || return
	s=$(($(wc -c <"$1")))
	while [ "$s" -gt "$n" ]; do
		k=$((s-n))
		[ "$k" -gt 786429 ] && k=786429
		tail -c "+$((n+1))" "$1" | head -c "$k" | base64
		n=$((n+k)) quiet=0
	done
}
pump() {
	o=0 e=0 turn=0 quiet=0 begin=
	while :; do
		ended=
		{ [ -e "$b.x" ] || [ ! -d "$b.l" ]; } && ended=1
		case $want in *o*) send "$b.o" "$o" >&3; o=$n; esac
		case $want in *e*) send "$b.e" "$e" >&4; e=$n; esac
		[ -n "$ended" ] && break
		turn=$((turn+1)) quiet=$((quiet+1))
		[ "$beat" -gt 0 ] && [ $((quiet%beat)) -eq 0 ] && echo >&3
		if [ "$limit" -gt 0 ] && [ $((turn%20)) -eq 0 ]; then
			now=$(date +%s)
			if [ $((now-${begin:=$now})) -ge "$limit" ]; then
				limit=0
				( set -- "$b.p" "$how"; `

	// Run runs the command.
	Run = ` )
			fi
		fi
		if [ $quiet -lt 5 ]; then sleep 0.01; elif [ $quiet -lt 20 ]; then sleep 0.1; else sleep 0.25; fi || sleep 1
	done
	case $want in *o*) [ -f "$b.o" ] && [ -e "$b.x" ] || o=; esac
	case $want in *e*) [ -f "$b.e" ] && [ -e "$b.x" ] || e=; esac
	echo ".$o" >&3
	echo ".$e" >&4
}
o=/dev/null e=/dev/null
case $want in *o*) o=$b.o; esac
case $want in *e*) e=$b.e; esac
pump &
pump=$!
( exec "$@" >"$o" 2>"$e" <"$input" 3>&- 4>&- )
status=$?
{ echo "$status" >"$b.x"; } || { [ -e "$b.x" ] || kill "$pump"; }
wait "$pump"
[ -s "$b.x" ] || [ ! -e "$b.x" ] || echo "#" >&3
echo "=$status" >&3
exit "$status"`
)
