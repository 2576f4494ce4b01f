package rubric

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// The limits of what a grader may look at in one grading.
const (
	mostCalls  = 25
	mostLines  = 120       // of one read
	mostFile   = 256 << 10 // bytes
	mostNames  = 200       // of ls and glob
	mostFound  = 100       // of grep
	mostAnswer = 12_000    // characters of one answer
	mostInAll  = 32_000    // characters
)

// tools are the grader's: they look, below the working directory.
type tools struct {
	*Loop
	byName map[string]tool.Tool
	logs   map[string]bool // full logs of commands that the record names
	order  []string
	calls  int
	given  int // characters
}

// fullLog is how a result names the log of a command.
var fullLog = regexp.MustCompile(`full log: (/[^\s\]]+)`)

func newTools(l *Loop, record string) *tools {
	t := &tools{Loop: l, byName: make(map[string]tool.Tool), logs: make(map[string]bool)}
	for _, m := range fullLog.FindAllStringSubmatch(record, -1) {
		// Output can say anything; only directories of the tools' own count.
		if strings.HasPrefix(path.Base(path.Dir(m[1])), "talkops-") {
			t.logs[path.Clean(m[1])] = true
		}
	}
	if l.Sandbox == nil {
		return t
	}
	for _, x := range l.Tools {
		switch x.Name() {
		case "ls", "read_file", "glob", "grep":
			t.byName[x.Name()] = x
			t.order = append(t.order, x.Name())
		}
	}
	return t
}

func (t *tools) list() []model.Tool {
	var list []model.Tool
	for _, name := range t.order {
		x := t.byName[name]
		list = append(list, model.Tool{Name: name, Description: x.Description(), Parameters: x.Parameters()})
	}
	return list
}

// told says what the grader may do.
func (t *tools) told() string {
	if len(t.order) == 0 {
		return "You have no tools: judge by the record."
	}
	return fmt.Sprintf("You may look with %s, inside %s only: at most %d calls, %d lines a read, files of at most %d KB, %d characters in all. "+
		"You can change nothing and run nothing.", strings.Join(t.order, ", "), t.Dir, mostCalls, mostLines, mostFile>>10, mostInAll)
}

// run answers one call. The error is for what ends the grading.
func (t *tools) run(ctx context.Context, c model.Call) (model.Result, error) {
	refuse := func(format string, args ...any) (model.Result, error) {
		return model.Result{CallID: c.ID, Name: c.Name, Text: "Refused: " + fmt.Sprintf(format, args...), Failed: true}, nil
	}
	x := t.byName[c.Name]
	if x == nil {
		return refuse("a grader has no tool %q", c.Name)
	}
	if t.calls++; t.calls > mostCalls {
		return refuse("the limit of %d calls is reached; decide with what you have", mostCalls)
	}
	if t.given >= mostInAll {
		return refuse("the limit of %d characters is reached; decide with what you have", mostInAll)
	}
	input := c.Input
	if c.Name == "read_file" {
		input = limited(input, mostLines)
	}
	plan, err := x.Plan(input)
	if err != nil {
		return refuse("%v", err)
	}
	if plan.Effect != tool.Reads {
		return refuse("a grader only looks")
	}
	if a := t.Agent.Approver; a == nil {
		return refuse("nothing here may approve it")
	} else if d, err := a.Approve(ctx, approval.Request{Tool: c.Name, Plan: plan, Place: t.Agent.Place}); err != nil {
		return model.Result{}, err
	} else if !d.Allow {
		return refuse("it %s", d.Reason)
	}
	if why, err := t.outside(ctx, plan.Path, c.Name == "read_file"); err != nil {
		return model.Result{}, err
	} else if why != "" {
		return refuse("%s", why)
	}
	got, err := x.Run(ctx, input, func(tool.Output) {})
	if err != nil {
		return model.Result{}, err
	}
	text := got.Text
	switch c.Name {
	case "ls", "glob":
		text = firstLines(text, mostNames)
	case "grep":
		text = firstLines(text, mostFound)
	}
	text = middle(text, min(mostAnswer, mostInAll-t.given))
	t.given += len(text)
	return model.Result{CallID: c.ID, Name: c.Name, Text: text, Failed: got.Code != ""}, nil
}

// whereScript prints the real paths of $2 and $1 and, if that is a file, its size.
const whereScript = `d=$(readlink -f -- "$2") && p=$(readlink -f -- "$1") || exit 1
echo "$d"
echo "$p"
[ ! -f "$p" ] || wc -c <"$p"`

// outside says why the file name may not be looked at, or "".
func (t *tools) outside(ctx context.Context, name string, sized bool) (string, error) {
	dir := path.Clean(t.Dir)
	if sized && t.logs[name] {
		dir = path.Dir(name)
	}
	if !within(dir, name) {
		return fmt.Sprintf("%s is outside of %s", name, dir), nil
	}
	var out strings.Builder
	exit, err := t.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", whereScript, "sh", name, dir}, Dir: "/", Stdout: &out})
	if err != nil {
		return "", err
	}
	lines := strings.SplitN(strings.TrimSuffix(out.String(), "\n"), "\n", 3)
	if exit != 0 || len(lines) < 2 || !within(lines[0], lines[1]) {
		return fmt.Sprintf("%s does not exist or leads out of %s", name, dir), nil
	}
	if len(lines) < 3 {
		return "", nil
	}
	if n, err := strconv.Atoi(strings.TrimSpace(lines[2])); sized && err == nil && n > mostFile && !t.logs[name] {
		return fmt.Sprintf("%s has %d bytes; a grader reads at most %d", name, n, mostFile), nil
	}
	return "", nil
}

func within(dir, name string) bool {
	name = path.Clean(name)
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// limited lowers the limit of a read.
func limited(input string, most int) string {
	var args map[string]any
	if json.Unmarshal([]byte(input), &args) != nil {
		return input // malformed: the tool says how
	}
	if n, ok := args["limit"].(float64); !ok || n > float64(most) || n <= 0 {
		args["limit"] = most
	}
	b, err := json.Marshal(args)
	if err != nil {
		return input
	}
	return string(b)
}

func firstLines(text string, most int) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("[… %d more lines left out …]\n", len(lines)-most)
}
