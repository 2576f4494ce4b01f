// Package tooltest has the rules that the tools of package tool keep on every
// sandbox. A provider's test calls Run with a function that opens one of its
// sandboxes.
package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A rule is one sentence of the contract and what shows that it holds.
type rule struct {
	name string
	opts tool.Options
	user bool // needs a user without privileges
	run  func(*place)
}

// Run tests every rule in a directory of its own below the working directory of
// a sandbox that open gives. The sandbox is shared; open registers its cleanup.
func Run(t *testing.T, open func(t *testing.T) sandbox.Sandbox) {
	sb := open(t)
	var uid bytes.Buffer
	if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"id", "-u"}, Stdout: &uid}); exit != 0 || err != nil {
		t.Fatalf("id -u: %d, %v", exit, err)
	}
	root := strings.TrimSpace(uid.String()) == "0"
	var n int
	// The group ends when the rules that run in parallel have.
	t.Run("rules", func(t *testing.T) {
		for _, rules := range [][]rule{pathRules, execRules, fileRules, readRules, listRules, grepRules, editRules} {
			for _, r := range rules {
				n++
				dir := path.Join(sb.Info().Dir, fmt.Sprintf("rule-%03d", n))
				t.Run(r.name, func(t *testing.T) {
					if r.user && root {
						t.Skip("the sandbox's user may do everything: id -u is 0")
					}
					if r.user {
						t.Cleanup(func() { // so that the directory can be removed
							sb.Exec(context.Background(), sandbox.Cmd{Args: []string{"chmod", "-R", "u+rwx", dir}})
						})
					}
					t.Parallel()
					r.run(newPlace(t, sb, dir, r.opts))
				})
			}
		}
	})
}

// A place is a fresh directory and the tools that start in it.
type place struct {
	*testing.T
	sb    sandbox.Sandbox
	dir   string
	tools map[string]tool.Tool

	mu     sync.Mutex
	stdout bytes.Buffer // what the tools emitted
	stderr bytes.Buffer
	first  time.Time
}

func newPlace(t *testing.T, sb sandbox.Sandbox, dir string, opts tool.Options) *place {
	p := &place{T: t, sb: sb, dir: dir, tools: make(map[string]tool.Tool)}
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"mkdir", dir}})
	if err != nil || exit != 0 {
		t.Fatalf("mkdir %s: %d, %v", dir, exit, err)
	}
	opts.Dir = dir
	for _, tl := range tool.All(sb, opts) {
		p.tools[tl.Name()] = tl
	}
	return p
}

// args are the parameters of a call.
type args map[string]any

// call runs a tool, whose error must be nil.
func (p *place) call(name string, a args) tool.Result {
	p.Helper()
	result, err := p.run(p.Context(), name, a)
	if err != nil {
		p.Fatalf("%s %v: %v", name, a, err)
	}
	return result
}

func (p *place) run(ctx context.Context, name string, a args) (tool.Result, error) {
	p.Helper()
	input, err := json.Marshal(a)
	if err != nil {
		p.Fatal(err)
	}
	return p.tools[name].Run(ctx, string(input), func(o tool.Output) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.first.IsZero() {
			p.first = time.Now()
		}
		if o.Stderr {
			p.stderr.Write(o.Data)
		} else {
			p.stdout.Write(o.Data)
		}
	})
}

// ok runs a tool that must succeed.
func (p *place) ok(name string, a args) tool.Result {
	p.Helper()
	result := p.call(name, a)
	if result.Code != "" {
		p.Fatalf("%s %.300v: %.1000s", name, a, result.Text)
	}
	return result
}

// refused runs a tool that must fail with code and a text that holds want.
func (p *place) refused(code sandbox.Code, want, name string, a args) tool.Result {
	p.Helper()
	result := p.call(name, a)
	if result.Code != code || !strings.Contains(result.Text, want) {
		p.Errorf("%s %.300v: got code %q, text %.1000q; want code %q, text with %q", name, a, result.Code, result.Text, code, want)
	}
	return result
}

// sh runs a script in the directory and returns its output.
func (p *place) sh(script string, a ...string) string {
	p.Helper()
	var stdout, stderr bytes.Buffer
	exit, err := p.sb.Exec(p.Context(), sandbox.Cmd{
		Args: append([]string{"/bin/sh", "-c", script, "sh"}, a...), Dir: p.dir, Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil || exit != 0 {
		p.Fatalf("%s: %d, %v, %s", script, exit, err, &stderr)
	}
	return stdout.String()
}

// put makes a file.
func (p *place) put(name, content string) {
	p.Helper()
	if err := p.sb.WriteFile(p.Context(), p.at(name), strings.NewReader(content), 0o644); err != nil {
		p.Fatal(err)
	}
}

// content returns what a file holds.
func (p *place) content(name string) string {
	p.Helper()
	var b bytes.Buffer
	if err := p.sb.ReadFile(p.Context(), p.at(name), &b); err != nil {
		p.Fatal(err)
	}
	return b.String()
}

// holds checks what a file holds.
func (p *place) holds(name, want string) {
	p.Helper()
	if got := p.content(name); got != want {
		p.Errorf("%s holds %.200q; want %.200q", name, got, want)
	}
}

// missing checks that nothing is there.
func (p *place) missing(name string) {
	p.Helper()
	p.sh(`! [ -e "$1" ] && ! [ -L "$1" ]`, p.at(name))
}

func (p *place) at(name string) string { return path.Join(p.dir, name) }

// says checks that a result's text holds every one of want.
func (p *place) says(r tool.Result, want ...string) {
	p.Helper()
	for _, w := range want {
		if !strings.Contains(r.Text, w) {
			p.Errorf("got text %.1000q; want it to hold %.300q", r.Text, w)
		}
	}
}

// lines checks the lines of a result that are not notes. The directory stands
// before names as @.
func (p *place) lines(r tool.Result, want ...string) {
	p.Helper()
	var got []string
	for line := range strings.Lines(r.Text) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "[") {
			got = append(got, strings.ReplaceAll(line, p.dir, "@"))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		p.Errorf("got lines %.1500q; want %.1500q", got, want)
	}
}

// text returns the lines that read_file showed, without their numbers.
func text(r tool.Result) string {
	var b strings.Builder
	for line := range strings.Lines(r.Text) {
		if number, rest, ok := strings.Cut(line, "\t"); ok && strings.Trim(number, " 0123456789") == "" {
			b.WriteString(rest)
		}
	}
	return b.String()
}
