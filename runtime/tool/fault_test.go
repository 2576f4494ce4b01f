package tool_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// broken is a sandbox whose commands and files fail.
type broken struct {
	sandbox.Sandbox
	exit int
	err  error
}

func (b broken) Exec(_ context.Context, cmd sandbox.Cmd) (int, error) {
	if cmd.Stderr != nil {
		io.WriteString(cmd.Stderr, "the reason\n")
	}
	return b.exit, b.err
}

func (b broken) ReadFile(context.Context, string, io.Writer) error { return b.err }

func named(t *testing.T, sb sandbox.Sandbox, name string) tool.Tool {
	t.Helper()
	for _, tl := range tool.All(sb, tool.Options{}) {
		if tl.Name() == name {
			return tl
		}
	}
	t.Fatalf("no tool %s", name)
	return nil
}

func TestFailuresOfTheSandbox(t *testing.T) {
	here := opener("")(t)
	for _, tt := range []struct {
		name        string
		exit        int
		err         error
		tool, input string
		code        sandbox.Code
		want        string
		ends        bool // the run
	}{
		{"C120 a failing ls is no empty success", 2, nil, "ls", `{}`, sandbox.CodeInternal, "the reason", false},
		{"a failing glob is no empty success", 2, nil, "glob", `{"pattern": "*"}`, sandbox.CodeInternal, "the reason", false},
		{"C148 a failing grep is no empty success", 2, nil, "grep", `{"pattern": "x"}`, sandbox.CodeInternal, "the reason", false},
		{"C59 a missing status is an error", 0, sandbox.Errorf(sandbox.CodeInternal, "no exit status"), "execute", `{"command": "true"}`, sandbox.CodeInternal, "no exit status", false},
		{"C224 a gone sandbox ends the run", 0, &sandbox.Error{Code: sandbox.CodeGone}, "execute", `{"command": "true"}`, sandbox.CodeGone, "gone", true},
		{"a gone sandbox ends the run from every tool", 0, &sandbox.Error{Code: sandbox.CodeGone}, "read_file", `{"file_path": "f"}`, sandbox.CodeGone, "gone", true},
		{"a refused credential ends the run", 0, &sandbox.Error{Code: sandbox.CodeUnauthenticated}, "ls", `{}`, sandbox.CodeUnauthenticated, "", true},
		{"C271 an unreachable service does not", 0, &sandbox.Error{Code: sandbox.CodeUnavailable}, "read_file", `{"file_path": "f"}`, sandbox.CodeUnavailable, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := named(t, broken{here, tt.exit, tt.err}, tt.tool).Run(t.Context(), tt.input, nil)
			if r.Code != tt.code || !strings.Contains(r.Text, tt.want) || (err != nil) != tt.ends {
				t.Errorf("got %q, %q, %v; want %q, text with %q, error %v", r.Code, r.Text, err, tt.code, tt.want, tt.ends)
			}
			if tt.ends && !errors.Is(err, tt.err) {
				t.Errorf("got %v; want %v", err, tt.err)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	here := opener("")(t)
	dir := here.Info().Dir
	for _, tt := range []struct {
		tool, input string
		want        tool.Plan
		code        sandbox.Code
	}{
		{"ls", `{}`, tool.Plan{Effect: tool.Reads, Path: dir}, ""},
		{"write_file", `{"file_path": "a", "content": ""}`, tool.Plan{Effect: tool.Writes, Path: dir + "/a"}, ""},
		{"delete", `{"file_path": "/x/./y"}`, tool.Plan{Effect: tool.Writes, Path: "/x/y"}, ""},
		{"execute", `{"command": "ls"}`, tool.Plan{Effect: tool.Runs, Command: "ls", Path: dir}, ""},
		{"execute", `{"command": 1}`, tool.Plan{}, sandbox.CodeInvalidArgument},
		{"execute", `{"command": "ls"} {}`, tool.Plan{}, sandbox.CodeInvalidArgument},
		{"execute", `[]`, tool.Plan{}, sandbox.CodeInvalidArgument},
		{"execute", `{`, tool.Plan{}, sandbox.CodeInvalidArgument},
	} {
		got, err := named(t, here, tt.tool).Plan(tt.input)
		if code := sandbox.CodeOf(err); code != tt.code || got != tt.want {
			t.Errorf("%s %s: got %+v, %v; want %+v, %q", tt.tool, tt.input, got, err, tt.want, tt.code)
		}
	}
}
