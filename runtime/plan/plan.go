// Package plan says what a command that acts on infrastructure would change,
// before it runs: terraform apply, kubectl apply and delete, helm upgrade and
// uninstall. It only looks, by means of the programs themselves where the command
// would run, and only as far as looking is approved without a person.
package plan

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const (
	within    = 20 * time.Second
	making    = 2 * time.Minute // where a plan has to be made first
	outputMax = 32 << 20        // of a program that is asked
	fileMax   = 64 << 20        // of a plan
	itemsMax  = 20
	nameMax   = 200
)

// A Previewer looks at what commands would change. It is safe for concurrent use.
type Previewer struct {
	Sandbox  sandbox.Sandbox
	Place    approval.Place
	Approver approval.Approver // must not wait for a person
	Within   time.Duration     // for one command; 0: 20 seconds, 2 minutes where a plan has to be made
}

// Preview says what a command would change, or returns nil if it is of no kind
// that is known here. That it cannot be found out is part of the answer.
func (p *Previewer) Preview(ctx context.Context, what tool.Plan) *approval.Change {
	if what.Effect != tool.Runs {
		return nil
	}
	act := find(what.Command, what.Path)
	if act == nil {
		return nil
	}
	c := &approval.Change{Program: act.program, Verb: act.verb, Names: act.names}
	limit := p.Within
	if limit == 0 {
		limit = within
		if act.program == "terraform" || act.program == "tofu" {
			limit = making
		}
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	look := &look{Previewer: p, action: act, change: c}
	err := act.problem
	if err == nil {
		err = look.run(within)
	}
	switch {
	case err == nil:
		c.Known = true
	case within.Err() != nil && ctx.Err() == nil:
		c.Problem = fmt.Sprintf("looking took longer than %v", limit)
	default:
		c.Problem = clip(err.Error())
	}
	if !c.Known {
		p.Forget(ctx, c)
		c.Command = ""
		c.Added, c.Changed, c.Replaced, c.Destroyed, c.Items, c.More = 0, 0, 0, 0, nil, 0
	}
	return c
}

// ErrChanged means that a plan is not the one that was shown.
var ErrChanged = errors.New("the plan is not the one that was shown")

// Same returns an error unless the plan that c is about is still the one that was
// shown.
func (p *Previewer) Same(ctx context.Context, c *approval.Change) error {
	if c == nil || c.SHA256 == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	sum, err := p.sum(ctx, c.File)
	if err != nil {
		return fmt.Errorf("%w: %s cannot be read: %w", ErrChanged, c.File, err)
	}
	if sum != c.SHA256 {
		return fmt.Errorf("%w: %s has changed", ErrChanged, c.File)
	}
	return nil
}

// Forget removes a plan that was made to be shown. It holds what the plan knows,
// secrets too.
func (p *Previewer) Forget(ctx context.Context, c *approval.Change) {
	if c == nil || c.Folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if _, err := p.run(ctx, "rm", "-rf", "--", c.Folder); err == nil {
		c.Folder = ""
	}
}

// folder makes a directory in the sandbox that nobody else can read.
func (p *Previewer) folder(ctx context.Context) (string, error) {
	out, err := p.run(ctx, "mktemp", "-d")
	name := strings.TrimSuffix(out, "\n")
	if err == nil && !path.IsAbs(name) {
		err = fmt.Errorf("mktemp says %q", clip(name))
	}
	if err != nil {
		return "", fmt.Errorf("make a place for the plan: %w", err)
	}
	return name, nil
}

// run starts a program that needs nobody's word.
func (p *Previewer) run(ctx context.Context, args ...string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	out := &limited{limit: 4 << 10}
	exit, err := p.Sandbox.Exec(ctx, sandbox.Cmd{ID: id.String(), Args: args, Stdout: out})
	if err == nil && exit != 0 {
		err = fmt.Errorf("%s ended with %d", args[0], exit)
	}
	return out.String(), err
}

// sum is the SHA-256 of a file in the sandbox.
func (p *Previewer) sum(ctx context.Context, name string) (string, error) {
	h := &limited{limit: fileMax}
	if err := p.Sandbox.ReadFile(ctx, name, h); err != nil {
		return "", err
	}
	sum := sha256.Sum256(h.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// A look is one attempt to find out what an action would change.
type look struct {
	*Previewer
	*action
	change *approval.Change
}

func (l *look) run(ctx context.Context) error {
	switch {
	case l.program == "terraform" || l.program == "tofu":
		return l.terraform(ctx)
	case l.program == "helm":
		return l.helm(ctx)
	case l.verb == "apply":
		return l.kubectlApply(ctx)
	}
	return l.kubectlDelete(ctx)
}

// ask runs a program that looks, if that needs no person, and returns its output
// and exit status.
func (l *look) ask(ctx context.Context, args ...string) ([]byte, int, error) {
	args = append([]string{l.words[0]}, args...)
	line := sandbox.Quote(args...)
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		line = name + "=" + sandbox.Quote(l.env[name]) + " " + line
	}
	d, err := l.Approver.Approve(ctx, approval.Request{Tool: "execute", Plan: tool.Plan{Effect: tool.Runs, Command: line, Path: l.dir}, Place: l.Place})
	if err != nil {
		return nil, 0, err
	}
	if !d.Allow {
		return nil, 0, fmt.Errorf("%s %s would tell, but itself needs approval: it %s", l.program, verbOf(args), d.Reason)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, 0, err
	}
	env := map[string]string{
		"TERM": "dumb", "PAGER": "cat", "CI": "1", "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1", "KUBECTL_EXTERNAL_DIFF": "diff -u -N",
	}
	maps.Copy(env, l.env)
	stdout, stderr := &limited{limit: outputMax}, &limited{limit: 1 << 20}
	exit, err := l.Sandbox.Exec(ctx, sandbox.Cmd{ID: id.String(), Args: args, Dir: l.dir, Env: env, Stdout: stdout, Stderr: stderr})
	switch {
	case stdout.over || stderr.over:
		return nil, exit, fmt.Errorf("%s %s says more than %d MB", l.program, verbOf(args), outputMax>>20)
	case err != nil:
		return nil, exit, err
	}
	if exit != 0 {
		return stdout.Bytes(), exit, fmt.Errorf("%s %s ended with %d%s", l.program, verbOf(args), exit, last(stderr.String()))
	}
	return stdout.Bytes(), exit, nil
}

// verbs are what the programs are asked to do in order to look.
var verbs = []string{"plan", "show", "workspace", "diff", "get", "config", "apply", "delete", "upgrade", "uninstall", "status", "list", "template"}

// verbOf is what a program is asked to do; the value of an option that stands before
// is not.
func verbOf(args []string) string {
	for _, a := range args[1:] {
		if slices.Contains(verbs, a) {
			return a
		}
	}
	return ""
}

// last is the last line of text, as the end of a sentence.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if l := strings.TrimSpace(lines[len(lines)-1]); l != "" {
		return ": " + clip(l)
	}
	return ""
}

// clip bounds what a stranger may say.
func clip(text string) string {
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\ufffd")), " "))
	if len(r) > nameMax {
		r = append(r[:nameMax-1], '…')
	}
	return string(r)
}

// note counts one thing that would change.
func (l *look) note(action, name string) {
	switch action {
	case "add":
		l.change.Added++
	case "change":
		l.change.Changed++
	case "replace":
		l.change.Replaced++
	case "destroy":
		l.change.Destroyed++
	}
	l.change.Items = append(l.change.Items, approval.Item{Action: action, Name: clip(name)})
}

// trim keeps the items that matter most.
func (l *look) trim() {
	weight := map[string]int{"destroy": 0, "replace": 1, "change": 2, "add": 3}
	slices.SortStableFunc(l.change.Items, func(a, b approval.Item) int { return weight[a.Action] - weight[b.Action] })
	if n := len(l.change.Items); n > itemsMax {
		l.change.Items, l.change.More = l.change.Items[:itemsMax], n-itemsMax
	}
}

// absolute is a name as seen from a directory.
func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// limited keeps what is written to it and fails when that is too much.
type limited struct {
	bytes.Buffer
	limit int
	over  bool
}

func (w *limited) Write(p []byte) (int, error) {
	if w.Len()+len(p) > w.limit {
		w.over = true
		return 0, errors.New("more than is wanted")
	}
	return w.Buffer.Write(p)
}
