package posix

// The room is eight files of the private directory, which are given back one at a time:
// a machine's disk that a command has filled then has room for the next command, so
// that somebody can look and make more, and work comes home. What is in them is random,
// as some disks store nothing for zeros.
//
// In the scripts $d is the private directory.
const (
	// KeepRoom is a line that makes the room, unless it is there or less than 8 MiB of
	// the disk are free. It prints nothing and never ends the script.
	KeepRoom = `[ -e "$d/room1" ] || {
	df -Pk "$d" | { read -r k; read -r k k k k rest; [ "$k" -ge 8192 ]; } &&
	for k in 8 7 6 5 4 3 2 1; do head -c 524288 /dev/urandom >"$d/room$k" || rm -f "$d/room$k"; done
} >/dev/null 2>&1 </dev/null
`
	// GiveRoom is a line that gives a part of the room back if less than that is free.
	// A script that deletes the files of a command that met a full disk has it at its
	// end: what the command itself printed may be all that filled it.
	GiveRoom = `df -Pk "$d" 2>/dev/null | { read -r k; read -r k k k k rest; [ "$k" -ge 512 ]; } 2>/dev/null ||
for piece in "$d"/room[1-8]; do rm -f "$piece"; break; done
`
)
