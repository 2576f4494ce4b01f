package posix

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	ExitShort = iota + 80
	ExitMissing
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

// SizedScript is WriteScript for a file $1 of which $4 bytes were sent; a negative
// number is not known.
const SizedScript = `[ "$4" -lt 0 ] || [ $(($(wc -c <"$1"))) -eq "$4" ] || exit 80
` + WriteScript

// FileError is the error of StatScript that ended with exit and printed out.
func FileError(op string, exit int, out string) error {
	e := &sandbox.Error{Op: op}
	switch exit {
	case ExitShort:
		e.Code, e.Msg = sandbox.CodeUnavailable, "not all of it arrived"
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

// Files is how ReadFile and WriteFile reach a machine.
type Files struct {
	// Shell runs a short script and returns what it prints. It may do so again if
	// repeat is set.
	Shell func(ctx context.Context, repeat bool, script string, args ...string) (out string, exit int, err error)

	Exec    func(ctx context.Context, cmd sandbox.Cmd) (int, error)
	Explain func(ctx context.Context, err error) error // says whether the machine is gone
	Text    bool                                       // requests carry names that are UTF-8 alone
}

// Size returns the size of the file name. One that is better read by a command has
// been copied to w, and done is true.
func (f Files) Size(ctx context.Context, name string, w io.Writer) (size int64, done bool, err error) {
	op := "read " + name
	if err := CheckPath(op, name); err != nil {
		return 0, false, err
	}
	out, exit, err := f.Shell(ctx, true, StatScript, name)
	if err != nil {
		return 0, false, InOp(op, err)
	}
	if exit != 0 {
		return 0, false, FileError(op, exit, out)
	}
	size, err = strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return 0, false, &sandbox.Error{Code: sandbox.CodeInternal, Op: op, Msg: "its size cannot be read"}
	}
	if size > 0 && (!f.Text || utf8.ValidString(name)) {
		return size, false, nil
	}
	// It may be one of those the kernel fills while they are read, or one whose name no
	// request can carry.
	exit, err = f.Exec(ctx, sandbox.Cmd{Args: []string{"cat", name}, Dir: "/", Stdout: w})
	if err == nil && exit != 0 {
		err = &sandbox.Error{Code: sandbox.CodeInternal, Msg: fmt.Sprintf("cat ended with %d", exit)}
	}
	return size, true, InOp(op, err)
}

// Read is ReadFile: part copies the file, which has size bytes, from offset on to w and
// returns how many bytes w took, also when it fails. It is asked again for what is
// missing after an error of code unavailable.
func (f Files) Read(ctx context.Context, name string, w io.Writer, part func(ctx context.Context, name string, offset, size int64, w io.Writer) (int64, error)) error {
	op := "read " + name
	size, done, err := f.Size(ctx, name, w)
	if done || err != nil {
		return err
	}
	var have int64
	for n := 1; ; n++ {
		got, err := part(ctx, name, have, size, w)
		have += got
		if err == nil {
			break
		}
		if got > 0 {
			n = 1
		}
		if sandbox.CodeOf(err) != sandbox.CodeUnavailable || n >= 4 {
			return InOp(op, f.Explain(ctx, err))
		}
		if rest.Sleep(ctx, rest.Backoff(n, err)) != nil {
			return rest.Ended(ctx, op)
		}
	}
	if have < size {
		return Short(op, have, size)
	}
	return nil
}

// Short is the error of have bytes where there should be size.
func Short(op string, have, size int64) error {
	return &sandbox.Error{Code: sandbox.CodeUnavailable, Op: op, Msg: fmt.Sprintf("only %d of %d bytes arrived", have, size)}
}

const dropWithin = 10 * time.Second

// Write is WriteFile: upload makes the private file hold what the caller gives, in
// pieces private.0 and so on if it likes, and returns how many bytes that were,
// negative if that is not known. Script, which is SizedScript or ends with it, moves
// it into place.
func (f Files) Write(ctx context.Context, name string, perm fs.FileMode, private, script string, upload func(ctx context.Context, private string) (int64, error)) error {
	op := "write " + name
	if err := CheckTarget(op, name); err != nil {
		return err
	}
	moved := false
	defer func() {
		if !moved {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
			defer cancel()
			f.Shell(clean, true, `rm -f "$1" "$1".[0-9]*`, private)
		}
	}()
	sent, err := upload(ctx, private)
	if err != nil {
		return InOp(op, err)
	}
	out, exit, err := f.Shell(ctx, false, script, private, name, fmt.Sprintf("%o", perm.Perm()), strconv.FormatInt(sent, 10))
	if err != nil {
		return InOp(op, err)
	}
	if exit != 0 {
		return WriteError(op, exit, out)
	}
	moved = true
	return nil
}
