// Package posix is what providers do with the POSIX shell inside a machine: the
// checks of a command before it is sent, the script that becomes the command,
// and the scripts for files. All run in dash, BusyBox and bash, with GNU, BSD or
// BusyBox tools.
package posix

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// CheckCommand says what is wrong with cmd, before anything is sent.
func CheckCommand(cmd sandbox.Cmd) error {
	if len(cmd.Args) == 0 || strings.TrimSpace(cmd.Args[0]) == "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "no command given")
	}
	for _, arg := range cmd.Args {
		switch {
		case len(arg) > sandbox.MaxArg:
			return sandbox.Errorf(sandbox.CodeTooLarge, "an argument of %d bytes is longer than %d", len(arg), sandbox.MaxArg)
		case strings.Contains(arg, "\x00"):
			return sandbox.Errorf(sandbox.CodeInvalidArgument, "an argument holds a NUL byte")
		}
	}
	if cmd.Dir != "" && !path.IsAbs(cmd.Dir) || strings.Contains(cmd.Dir, "\x00") {
		return sandbox.Errorf(sandbox.CodeInvalidPath, "the directory %q is not absolute", cmd.Dir)
	}
	for name, value := range cmd.Env {
		if !isName(name) || strings.Contains(value, "\x00") || len(name)+len(value) >= sandbox.MaxArg {
			return sandbox.Errorf(sandbox.CodeInvalidArgument, "the environment variable %q is not valid", name)
		}
	}
	if cmd.ID != "" {
		return CheckID(cmd.ID)
	}
	return nil
}

// CheckID says what is wrong with a command's id. A valid one can be part of a
// file name.
func CheckID(id string) error {
	if id == "" || len(id) > 64 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return sandbox.Errorf(sandbox.CodeInvalidArgument, "the command id %q is not valid", id)
	}
	return nil
}

// isName reports whether a shell can export name.
func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// NoDir is the status of a script of Command whose directory cannot be entered.
// The file files+".f" then exists and says why.
const NoDir = 97

// Command returns the shell text that becomes cmd: it notes its process id in the
// file files+".p", enters cmd.Dir (dir if it is empty), exports env and then
// cmd.Env, and turns into the program. Files is the absolute path of the
// command's private files without their suffix.
func Command(files, dir string, env map[string]string, cmd sandbox.Cmd) string {
	if cmd.Dir != "" {
		dir = cmd.Dir
	}
	var s strings.Builder
	fmt.Fprintf(&s, "echo $$ >%s\n", sandbox.Quote(files+".p"))
	fmt.Fprintf(&s, "cd %s 2>/dev/null || { if [ -e %[1]s ]; then [ -d %[1]s ] && echo denied || echo file; else echo none; fi >%s; exit %d; }\n",
		Word(dir), sandbox.Quote(files+".f"), NoDir)
	all := make(map[string]string)
	maps.Copy(all, env)
	maps.Copy(all, cmd.Env)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if isName(name) {
			fmt.Fprintf(&s, "export %s=%s\n", name, sandbox.Quote(all[name]))
		}
	}
	s.WriteString("exec " + sandbox.Quote(cmd.Args...) + "\n")
	return s.String()
}

// NoDirError is the error of a command that ended with NoDir and whose file .f
// holds why; nil if that is empty, so that the status is the command's own.
func NoDirError(dir, why string) error {
	e := &sandbox.Error{Op: "run in " + dir}
	switch strings.TrimSpace(why) {
	case "":
		return nil
	case "denied":
		e.Code = sandbox.CodePermissionDenied
	case "file":
		e.Code = sandbox.CodeNotADirectory
	default:
		e.Code = sandbox.CodeFileNotFound
	}
	return e
}

// FullDisk is the error of a command that ended with exit where its output had no
// room.
func FullDisk(exit int) error {
	return &sandbox.Error{Code: sandbox.CodeNoSpace, Op: "read output", Msg: fmt.Sprintf("the command ended with %d on a full disk, and output may be lost", exit)}
}

// Script returns the command line that runs the shell text script with args as
// $1 and so on. It is valid UTF-8 if script is.
func Script(script string, args ...string) string {
	line := "sh -c " + sandbox.Quote(script) + " sh"
	for _, arg := range args {
		line += " " + Word(arg)
	}
	return line
}

// Word quotes s for a shell command line that travels as JSON or protobuf text:
// bytes that are not UTF-8 are spelled out. It loses trailing newlines of such an
// s.
func Word(s string) string {
	if utf8.ValidString(s) {
		return sandbox.Quote(s)
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString(`\0` + fmt.Sprintf("%03s", strconv.FormatUint(uint64(c), 8)))
	}
	return `"$(printf %b ` + sandbox.Quote(b.String()) + `)"`
}

// KillScript ends the process group whose leader is named in the file $1: TERM,
// then KILL a second later. The dead whom nobody has buried yet do not count.
// It ends with 1 if there is no such group.
const KillScript = `p=$(cat "$1" 2>/dev/null) && [ "$p" -gt 1 ] || exit 1
alive() {
	kill -0 "-$p" 2>/dev/null || return 1
	[ -r /proc/self/stat ] || return 0
	sed -n 's/.*) \([^ ]*\) [0-9]* '"$p"' .*/\1/p' /proc/[0-9]*/stat 2>/dev/null | grep -q '[^ZX]'
}
kill -TERM "-$p" 2>/dev/null || exit 1
i=0
while alive && [ $i -lt 9 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; i=$((i+9)); }
	i=$((i+1))
done
kill -KILL "-$p" 2>/dev/null
exit 0`

// EnterScript prints three lines: a private directory for the files of commands,
// "setsid" or "none" for whether there is that program, and the real path of the
// working directory, which is $1 if it can be made and written, else $2, else the
// home directory.
const EnterScript = `r=${TMPDIR:-/tmp}/.talkops-$(id -u)
mkdir -m 700 "$r" 2>/dev/null
if [ -L "$r" ] || [ ! -d "$r" ] || [ ! -O "$r" ] || [ ! -w "$r" ]; then
	r=$(umask 077; mktemp -d "${TMPDIR:-/tmp}/.talkops-XXXXXX") || exit 3
fi
(mkdir -p "$1" && cd "$1" && [ -w . ]) 2>/dev/null && cd "$1" || cd "$2" 2>/dev/null || cd || exit 4
echo "$r"
command -v setsid >/dev/null 2>&1 && echo setsid || echo none
pwd -P`

// Entered reads what EnterScript printed.
func Entered(out string, exit int) (run string, setsid bool, dir string, err error) {
	lines := strings.SplitN(strings.TrimSuffix(out, "\n"), "\n", 3)
	if exit != 0 || len(lines) != 3 || !path.IsAbs(lines[0]) || !path.IsAbs(lines[2]) {
		return "", false, "", &sandbox.Error{Code: sandbox.CodeInternal, Op: "find working directory", Msg: fmt.Sprintf("the script ended with %d: %s", exit, rest.Clean(out))}
	}
	return lines[0], lines[1] == "setsid", lines[2], nil
}

// A Text keeps what a script of talkops's own prints, which is short: a service that
// sends no end of it must not fill the memory.
type Text struct{ strings.Builder }

const textMost = 4 << 20

func (t *Text) Write(p []byte) (int, error) {
	if t.Len()+len(p) > textMost {
		return 0, sandbox.Errorf(sandbox.CodeTooLarge, "a script's answer is longer than %d bytes", textMost)
	}
	return t.Builder.Write(p)
}

// InOp says of err which operation it ended.
func InOp(op string, err error) error {
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Op = op
	return &named
}
