// Package conform is the sandbox contract as rules that can be run anywhere:
// against an emulator under go test (see sandboxtest), and against a live
// service by `talkops sandbox check`.
package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Target is the provider that is checked and how its sandboxes are opened.
type Target struct {
	Provider sandbox.Provider
	Spec     sandbox.Spec
	Skip     map[string]string // rule → why it cannot hold on this provider
	Scale    float64           // multiplies every time limit; 0 means 1
}

// A Rule is one sentence of the contract and how it is checked.
type Rule struct {
	ID  string // "C16"
	Say string // "stdout arrives, stderr stays empty, status 0"
	run func(ctx context.Context, c *Case)
}

// A Verdict is how a rule came out.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip"
)

// A Result is one rule's outcome.
type Result struct {
	Rule    Rule
	Verdict Verdict
	Detail  string // why it failed or was skipped
	Took    time.Duration
}

// A Case is one run of one rule: the sandbox it may use and a directory of its
// own there.
type Case struct {
	Target
	Sandbox sandbox.Sandbox
	Dir     string // absolute, empty at first

	mu       sync.Mutex
	failures []string
	skipped  string
}

// Rules lists the contract in order.
func Rules() []Rule {
	return append(append(execRules(), fileRules()...), lifeRules()...)
}

// Run opens one sandbox, checks the rules in it (all of Rules if none are
// given), ends it, and reports each result as it is known. The error says that
// no sandbox could be opened or that ending it failed.
func Run(ctx context.Context, t Target, report func(Result), rules ...Rule) (err error) {
	if len(rules) == 0 {
		rules = Rules()
	}
	if t.Scale == 0 {
		t.Scale = 1
	}
	sb, err := t.Provider.Open(ctx, t.Spec)
	if err != nil {
		return fmt.Errorf("open a sandbox: %w", err)
	}
	defer func() {
		sb.Close()
		if t.Spec.ID != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if derr := t.Provider.Destroy(ctx, t.named(sb)); err == nil && derr != nil {
			err = fmt.Errorf("end the sandbox %s: %w", sb.Info().ID, derr)
		}
	}()
	for i, r := range rules {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(t.check(ctx, sb, r, i))
	}
	return nil
}

func (t Target) named(sb sandbox.Sandbox) sandbox.Spec {
	spec := t.Spec
	spec.ID, spec.Token = sb.Info().ID, sb.Info().Token
	return spec
}

// check runs one rule in a directory of its own, within a bounded time.
func (t Target) check(ctx context.Context, sb sandbox.Sandbox, r Rule, n int) (res Result) {
	res = Result{Rule: r, Verdict: Pass}
	if why, skip := t.Skip[r.ID]; skip {
		res.Verdict, res.Detail = Skip, why
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(2*time.Minute)*t.Scale))
	defer cancel()
	c := &Case{Target: t, Sandbox: sb}
	began := time.Now()
	func() {
		defer func() {
			if p := recover(); p != nil && p != errStop {
				panic(p)
			}
		}()
		c.Dir = path.Join(sb.Info().Dir, fmt.Sprintf(".conform-%d-%d", time.Now().UnixNano(), n))
		c.sh(ctx, `mkdir -p -- "$1"`, c.Dir)
		r.run(ctx, c)
	}()
	sb.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", `chmod -R u+rwx "$1"; rm -rf -- "$1"`, "sh", c.Dir}})
	res.Took = time.Since(began)
	switch {
	case len(c.failures) > 0:
		res.Verdict, res.Detail = Fail, strings.Join(c.failures, "; ")
	case c.skipped != "":
		res.Verdict, res.Detail = Skip, c.skipped
	}
	return res
}

// errStop unwinds a rule that cannot go on.
var errStop = errors.New("the rule ends here")

func (c *Case) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

func (c *Case) fatalf(format string, args ...any) {
	c.errorf(format, args...)
	panic(errStop)
}

func (c *Case) skip(why string) {
	c.skipped = why
	panic(errStop)
}

// within scales a time limit.
func (c *Case) within(d time.Duration) time.Duration { return time.Duration(float64(d) * c.Scale) }

// ran is what a command did.
type ran struct {
	out, err string
	exit     int
	failure  error
	took     time.Duration
}

// exec runs a command in the case's directory unless cmd says otherwise.
func (c *Case) exec(ctx context.Context, cmd sandbox.Cmd) ran {
	var out, errOut bytes.Buffer
	if cmd.Dir == "" {
		cmd.Dir = c.Dir
	}
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errOut
	}
	began := time.Now()
	exit, err := c.Sandbox.Exec(ctx, cmd)
	return ran{out.String(), errOut.String(), exit, err, time.Since(began)}
}

// script runs a shell script in the case's directory.
func (c *Case) script(ctx context.Context, script string, args ...string) ran {
	return c.exec(ctx, sandbox.Cmd{Args: append([]string{"/bin/sh", "-c", script, "sh"}, args...)})
}

// sh runs a script that must succeed and returns what it prints.
func (c *Case) sh(ctx context.Context, script string, args ...string) string {
	cmd := sandbox.Cmd{Args: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Dir: c.Sandbox.Info().Dir}
	r := c.exec(ctx, cmd)
	if r.failure != nil || r.exit != 0 {
		c.fatalf("script %q: exit %d, %v, stderr %q", script, r.exit, r.failure, r.err)
	}
	return r.out
}

// want checks a command's whole outcome.
func (c *Case) want(r ran, exit int, out, errOut string) {
	if r.failure != nil {
		c.errorf("error: %v", r.failure)
	}
	if r.exit != exit {
		c.errorf("exit %d, want %d (stderr %q)", r.exit, exit, clip(r.err))
	}
	if r.out != out {
		c.errorf("stdout %q, want %q", clip(r.out), clip(out))
	}
	if errOut != whatever && r.err != errOut {
		c.errorf("stderr %q, want %q", clip(r.err), clip(errOut))
	}
}

// whatever stands for output that does not matter.
const whatever = "\x00any"

func clip(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%s… (%d bytes)", s[:200], len(s))
	}
	return s
}

func (c *Case) path(name string) string { return path.Join(c.Dir, name) }

func (c *Case) write(ctx context.Context, name, content string) {
	if err := c.Sandbox.WriteFile(ctx, c.path(name), strings.NewReader(content), 0o644); err != nil {
		c.fatalf("write %s: %v", name, err)
	}
}

func (c *Case) read(ctx context.Context, name string) string {
	var b bytes.Buffer
	if err := c.Sandbox.ReadFile(ctx, c.path(name), &b); err != nil {
		c.fatalf("read %s: %v", name, err)
	}
	return b.String()
}

// code checks that err is of that code.
func (c *Case) code(err error, want ...sandbox.Code) {
	got := sandbox.CodeOf(err)
	for _, w := range want {
		if got == w {
			return
		}
	}
	c.errorf("error %v has code %q, want %q", err, got, want)
}
