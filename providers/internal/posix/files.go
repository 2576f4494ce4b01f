package posix

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// CheckPath says what is wrong with the name of a file.
func CheckPath(op, name string) error {
	switch {
	case !path.IsAbs(name):
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op, Msg: "the path is not absolute"}
	case strings.Contains(name, "\x00"):
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op, Msg: "the path holds a NUL byte"}
	case len(name) > 4095:
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: "file", Msg: "the path is too long"}
	}
	return nil
}

// CheckTarget is CheckPath for a file that is to be written.
func CheckTarget(op, name string) error {
	if err := CheckPath(op, name); err != nil {
		return err
	}
	if strings.HasSuffix(name, "/") {
		return &sandbox.Error{Code: sandbox.CodeIsDirectory, Op: op}
	}
	return nil
}

// The scripts end with one of these where a file is not what it must be.
const (
	ExitMissing = iota + 81
	ExitDir
	ExitNoFile
	ExitDenied
	ExitNotDir
)

// ancestor ends the script with the reason why $1 does not exist or cannot be made.
const ancestor = `ancestor() {
	p=$1
	while [ ! -e "$p" ] && [ ! -L "$p" ] && [ -n "$p" ]; do p=${p%/*}; done
	p=${p:-/}
	[ -L "$p" ] && [ ! -e "$p" ] && exit 81
	[ -d "$p" ] || exit 85
	[ -x "$p" ] || exit 84
}
`

// StatScript prints the size of the regular file $1. A size of 0 may be that of
// a file the kernel fills while it is read.
const StatScript = ancestor + `[ -e "$1" ] || { ancestor "$1"; exit 81; }
[ -d "$1" ] && exit 82
[ -f "$1" ] || exit 83
[ -r "$1" ] || exit 84
stat -L -c %s "$1" 2>/dev/null || stat -L -f %z "$1" 2>/dev/null || wc -c <"$1"`

// follow is readlink -f of $1, where there may be no such program.
const follow = `follow() {
	t=$1 i=0
	while [ -L "$t" ] && [ $i -lt 40 ]; do
		l=$({ readlink -n "$t" 2>/dev/null || { l=$(ls -ld "$t") && printf %s "${l#*"$t -> "}"; }; } && echo x) || return
		l=${l%x}
		case $l in /*) t=$l ;; *) t=${t%/*}/$l ;; esac
		i=$((i+1))
	done
	[ ! -L "$t" ] && printf '%s\n' "$t"
}
`

// WriteScript moves the file $1 to $2, whose mode it keeps or which gets the mode
// $3 (octal). A link is followed; parents are made.
const WriteScript = ancestor + follow + `t=$2
if [ -L "$t" ]; then
	t=$({ readlink -f "$t" 2>/dev/null || readlink -m "$t" 2>/dev/null || follow "$t"; } && echo x) || exit 81
	t=${t%?x}
fi
[ -d "$t" ] && exit 82
mode=$3
if [ -e "$t" ]; then
	[ -f "$t" ] || exit 83
	[ -w "$t" ] || exit 84
	mode=$(stat -c %a "$t" 2>/dev/null || stat -f %Lp "$t" 2>/dev/null) || mode=
fi
d=${t%/*}
d=${d:-/}
if ! e=$(mkdir -p "$d" 2>&1); then
	ancestor "$d"
	[ -w "$p" ] || exit 84
	echo "$e"
	exit 1
fi
[ -w "$d" ] && [ -x "$d" ] || exit 84
n=$d/.talkops-${1##*/}
if [ -n "$mode" ]; then
	mv -f "$1" "$n" && chmod "$mode" "$n" && mv -f "$n" "$t" && exit
else
	# There is no stat: a copy has the mode.
	cp -p "$t" "$n" && cat "$1" >"$n" && mv -f "$n" "$t" && rm -f "$1" && exit
fi
rm -f "$n"
exit 1`

// FileError is the error of StatScript that ended with exit and printed out.
func FileError(op string, exit int, out string) error {
	e := &sandbox.Error{Op: op}
	switch exit {
	case ExitMissing:
		e.Code = sandbox.CodeFileNotFound
	case ExitDir:
		e.Code = sandbox.CodeIsDirectory
	case ExitNoFile:
		e.Code, e.Msg = sandbox.CodeNotAFile, "not a regular file"
	case ExitDenied:
		e.Code = sandbox.CodePermissionDenied
	case ExitNotDir:
		e.Code = sandbox.CodeNotADirectory
	default:
		e.Msg = fmt.Sprintf("ended with %d: %s", exit, rest.Clean(out))
		switch {
		case strings.Contains(out, "No space left"), strings.Contains(out, "quota exceeded"):
			e.Code = sandbox.CodeNoSpace
		case strings.Contains(out, "name too long"):
			e.Code = sandbox.CodeInvalidPath
		case strings.Contains(out, "ermission denied"), strings.Contains(out, "Read-only file system"):
			e.Code = sandbox.CodePermissionDenied
		default:
			e.Code = sandbox.CodeInternal
		}
	}
	return e
}

// WriteError is the error of WriteScript that ended with exit and printed out.
func WriteError(op string, exit int, out string) error {
	if exit == ExitNotDir {
		return &sandbox.Error{Code: sandbox.CodeInvalidPath, Op: op, Msg: "a parent is not a directory"}
	}
	return FileError(op, exit, out)
}

// A Source remembers the error of the caller's reader apart from those of the
// way it takes.
type Source struct {
	R   io.Reader
	Err error
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.R.Read(p)
	if err != nil && err != io.EOF {
		s.Err = err
	}
	return n, err
}
