package posix

import (
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/providers/internal/rest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Exec is Sandbox.Exec: run is given a command that is checked and has an id. When ctx
// has ended, that is the outcome, unless the caller's writer failed.
func Exec(ctx context.Context, cmd sandbox.Cmd, run func(context.Context, sandbox.Cmd) (int, error)) (int, error) {
	if ctx.Err() != nil {
		return sandbox.ExitOf(ctx)
	}
	if err := CheckCommand(cmd); err != nil {
		return 0, err
	}
	if cmd.ID == "" {
		cmd.ID = rest.Random()
	}
	exit, err := run(ctx, cmd)
	if ctx.Err() != nil && err != nil && !errors.Is(err, rest.ErrWrite) {
		return sandbox.ExitOf(ctx)
	}
	return exit, err
}

// A Program is a command as a script of a provider runs it.
type Program struct {
	Args  []string // its words
	Input string   // the file it reads
}

// Prepare makes a program of cmd, whose private files are files.*: what is longer than
// inline, and what it reads, is uploaded. If setsid is set, the command leads a session
// of its own: it is a group that can be ended, and what it leaves in the background
// lives on. Dir and env are those of Command.
func Prepare(ctx context.Context, files, dir string, env map[string]string, cmd sandbox.Cmd, setsid bool, inline int, upload func(ctx context.Context, name string, r io.Reader) (int64, error)) (Program, error) {
	script := Command(files, dir, env, cmd)
	p := Program{Args: []string{"sh", "-c", script}, Input: "/dev/null"}
	if len(script) > inline || !utf8.ValidString(script) {
		p.Args = []string{"sh", files + ".c"}
		if _, err := upload(ctx, files+".c", strings.NewReader(script)); err != nil {
			return Program{}, err
		}
	}
	if setsid {
		p.Args = append([]string{"setsid"}, p.Args...)
	}
	if cmd.Stdin != nil {
		p.Input = files + ".i"
		if _, err := upload(ctx, p.Input, cmd.Stdin); err != nil {
			return Program{}, err
		}
	}
	return p, nil
}

// EndScript ends the command with the files $1.*, if it runs.
const EndScript = `[ -e "$1.x" ] && exit 0
set -- "$1.p"
` + KillScript

// HoldScript is the beginning of a script that ends the command with the files $1.*:
// one that has not started yet never will.
const HoldScript = `mkdir "$1.l" 2>/dev/null && exit 0
i=0
while [ ! -s "$1.p" ] && [ ! -e "$1.x" ] && [ $i -lt 20 ]; do
	sleep 0.1 2>/dev/null || sleep 1
	i=$((i+1))
done
`
