package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func execRules() []Rule {
	return []Rule{
		{"C16", "output arrives on stdout, stderr stays empty, status 0", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "echo hi"), 0, "hi\n", "")
		}},
		{"C17", "a non-zero status is a status, not an error", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "exit 3"), 3, "", "")
		}},
		{"C18", "stdout and stderr stay apart", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "printf out; printf err >&2"), 0, "out", "err")
		}},
		{"C19", "a signal's status is 128 and its number", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "kill -9 $$"), 137, "", whatever)
		}},
		{"C20", "a missing program is 127 with a word on stderr", func(ctx context.Context, c *Case) {
			r := c.exec(ctx, sandbox.Cmd{Args: []string{"no-such-program-xyz"}})
			c.want(r, 127, "", whatever)
			if r.err == "" {
				c.errorf("nothing on stderr")
			}
		}},
		{"C21", "a file that is not executable is 126", func(ctx context.Context, c *Case) {
			c.write(ctx, "f", "echo no\n")
			c.want(c.script(ctx, "./f"), 126, "", whatever)
		}},
		{"C22", "arguments are taken literally", func(ctx context.Context, c *Case) {
			args := []string{"a b", "$HOME", "`id`", "$(id)", "'", `"`, `\`, "*", "", "tab\tline\nend"}
			r := c.exec(ctx, sandbox.Cmd{Args: append([]string{"printf", "[%s]"}, args...)})
			c.want(r, 0, "["+strings.Join(args, "][")+"]", "")
		}},
		{"C23", "a script of several lines runs whole", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "cat <<X\nhere\nX\nf() { echo f$1; }\nfor i in 1 2\ndo f $i\ndone"), 0, "here\nf1\nf2\n", "")
		}},
		{"C24", "a script of 200 KiB runs from standard input", func(ctx context.Context, c *Case) {
			script := strings.Repeat("# a comment to make it long\n", 200<<10/28) + "echo end\n"
			c.want(c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh"}, Stdin: strings.NewReader(script)}), 0, "end\n", "")
		}},
		{"C25", "standard input is empty, never inherited", func(ctx context.Context, c *Case) {
			ctx, cancel := context.WithTimeout(ctx, c.within(10*time.Second))
			defer cancel()
			c.want(c.exec(ctx, sandbox.Cmd{Args: []string{"cat"}}), 0, "", "")
		}},
		{"C27", "a background child does not hold the call up", func(ctx context.Context, c *Case) {
			r := c.script(ctx, "sleep 30 & echo now")
			c.want(r, 0, "now\n", "")
			if r.took > c.within(5*time.Second) {
				c.errorf("took %s", r.took)
			}
		}},
		{"C30", "a deadline is 124 and the context's error, with the output so far", func(ctx context.Context, c *Case) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			r := c.script(ctx, "echo before; sleep 60")
			if r.exit != 124 || !errors.Is(r.failure, context.DeadlineExceeded) || r.out != "before\n" {
				c.errorf("exit %d, error %v, stdout %q", r.exit, r.failure, r.out)
			}
			if r.took > c.within(10*time.Second) {
				c.errorf("took %s", r.took)
			}
		}},
		{"C32", "at a deadline the whole process tree is gone", func(ctx context.Context, c *Case) {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			c.script(short, "sh -c 'sleep 300 & echo $! > pid; wait'")
			c.gone(ctx, "pid")
		}},
		{"C33", "a command that ignores TERM is killed", func(ctx context.Context, c *Case) {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			r := c.script(short, `trap "" TERM; echo $$ > pid; while :; do sleep 1; done`)
			if r.exit != 124 || r.took > c.within(12*time.Second) {
				c.errorf("exit %d after %s", r.exit, r.took)
			}
			c.gone(ctx, "pid")
		}},
		{"C37", "cancelling ends the command and its children within 7 s: 130", func(ctx context.Context, c *Case) {
			stopped, cancel := context.WithCancel(ctx)
			defer cancel()
			began := time.Now()
			w := &watcher{want: "go", found: func() { began = time.Now(); cancel() }}
			r := c.exec(stopped, sandbox.Cmd{Args: []string{"/bin/sh", "-c", "sleep 60 & echo $! > pid; echo go; wait"}, Stdout: w})
			if r.exit != 130 || !errors.Is(r.failure, context.Canceled) {
				c.errorf("exit %d, error %v", r.exit, r.failure)
			}
			if took := time.Since(began); took > c.within(7*time.Second) {
				c.errorf("took %s", took)
			}
			c.gone(ctx, "pid")
			c.want(c.script(ctx, "echo next"), 0, "next\n", "")
		}},
		{"C39", "a command cancelled before it began never runs", func(ctx context.Context, c *Case) {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if r := c.script(ended, "echo x > marker"); r.exit != 130 || !errors.Is(r.failure, context.Canceled) {
				c.errorf("exit %d, error %v", r.exit, r.failure)
			}
			if out := c.sh(ctx, `ls -A "$1"`, c.Dir); out != "" {
				c.errorf("it ran: %q", out)
			}
		}},
		{"C40", "output arrives while the command runs", func(ctx context.Context, c *Case) {
			began := time.Now()
			var first time.Duration
			w := &watcher{want: "1\n", found: func() { first = time.Since(began) }}
			r := c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", "for i in 1 2 3 4; do echo $i; sleep 1; done"}, Stdout: w})
			if got := w.b.String(); r.exit != 0 || got != "1\n2\n3\n4\n" {
				c.errorf("exit %d, stdout %q", r.exit, got)
			}
			if first == 0 || first > c.within(2500*time.Millisecond) {
				c.errorf("the first piece came after %s", first)
			}
		}},
		{"C41", "no newline is added or removed", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, "printf 'no newline'"), 0, "no newline", "")
		}},
		{"C42", "output bytes are exact: NUL, invalid UTF-8", func(ctx context.Context, c *Case) {
			c.want(c.script(ctx, `printf 'a\000b\377\376\200\r\n'`), 0, "a\x00b\xff\xfe\x80\r\n", "")
		}},
		{"C47", "much output arrives whole, and the producer is not killed", func(ctx context.Context, c *Case) {
			n := &counter{}
			r := c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", "yes 0123456789abcde | head -c 20000000"}, Stdout: n})
			if r.failure != nil || r.exit != 0 || n.n != 20000000 {
				c.errorf("exit %d, error %v, %d bytes", r.exit, r.failure, n.n)
			}
		}},
		{"C48", "every line arrives, not a tail of them", func(ctx context.Context, c *Case) {
			r := c.script(ctx, "i=0; while [ $i -lt 250 ]; do echo line $i; i=$((i+1)); done")
			if n := strings.Count(r.out, "\n"); n != 250 {
				c.errorf("%d lines", n)
			}
		}},
		{"C49", "a command runs in its working directory", func(ctx context.Context, c *Case) {
			dir := c.path("a b'c")
			c.sh(ctx, `mkdir -p -- "$1"`, dir)
			c.want(c.exec(ctx, sandbox.Cmd{Args: []string{"pwd"}, Dir: dir}), 0, dir+"\n", "")
		}},
		{"C50", "a missing working directory is an error and nothing runs", func(ctx context.Context, c *Case) {
			marker := c.path("marker")
			r := c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", `: > "$1"`, "sh", marker}, Dir: c.path("missing")})
			c.code(r.failure, sandbox.CodeFileNotFound)
			if out := c.sh(ctx, `ls -A "$1"`, c.Dir); out != "" {
				c.errorf("it ran elsewhere: %q", out)
			}
		}},
		{"C51", "calls share files, not shell state", func(ctx context.Context, c *Case) {
			c.script(ctx, "mkdir sub && cd sub && export A=1; set -e; false")
			c.want(c.script(ctx, `pwd; echo "[$A]"`), 0, c.Dir+"\n[]\n", "")
		}},
		{"C56", "environment values arrive byte for byte", func(ctx context.Context, c *Case) {
			value := "x y'\"$HOME`id`\n z\\"
			r := c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", `printf %s "$CONFORM_A"`}, Env: map[string]string{"CONFORM_A": value}})
			c.want(r, 0, value, "")
		}},
		{"C61", "output just before the exit is delivered", func(ctx context.Context, c *Case) {
			r := c.script(ctx, "head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2; exit 4")
			if r.exit != 4 || len(r.out) != 65536 || len(r.err) != 65536 {
				c.errorf("exit %d, %d and %d bytes", r.exit, len(r.out), len(r.err))
			}
		}},
		{"C62", "an empty command is an invalid argument", func(ctx context.Context, c *Case) {
			c.code(c.exec(ctx, sandbox.Cmd{}).failure, sandbox.CodeInvalidArgument)
		}},
		{"C54", "nothing of the host's environment is in a remote sandbox", func(ctx context.Context, c *Case) {
			if c.Provider.Describe().Features.Host {
				c.skip("the sandbox is this computer")
			}
			env := c.sh(ctx, "env")
			for _, s := range c.Provider.Describe().Settings {
				if v := c.Spec.Settings[s.Key]; s.Secret && v != "" && strings.Contains(env, v) {
					c.errorf("the value of %s is in the sandbox's environment", s.Key)
				}
			}
		}},
		{"C272", "commands run side by side", func(ctx context.Context, c *Case) {
			began := time.Now()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { c.want(c.script(ctx, "sleep 1"), 0, "", "") })
			}
			wg.Wait()
			if took := time.Since(began); took > c.within(3*time.Second) {
				c.errorf("four sleeps of one second took %s", took)
			}
		}},
		{"C273", "outputs of commands side by side do not mix", func(ctx context.Context, c *Case) {
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					c.want(c.script(ctx, `printf %s "$1"; printf %s "$1" >&2; exit "$1"`, fmt.Sprint(i)), i, fmt.Sprint(i), fmt.Sprint(i))
				})
			}
			wg.Wait()
		}},
		{"C278", "cancelling one command leaves the others", func(ctx context.Context, c *Case) {
			one, cancel := context.WithCancel(ctx)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() { c.script(one, "sleep 30") })
			wg.Go(func() {
				w := &watcher{want: "go", found: cancel}
				r := c.exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", "echo go; sleep 2; echo done"}, Stdout: w})
				if got := w.b.String(); r.exit != 0 || got != "go\ndone\n" {
					c.errorf("the other command: exit %d, stdout %q, %v", r.exit, got, r.failure)
				}
			})
			wg.Wait()
		}},
	}
}

// gone checks that the process whose id stands in a file is not running.
func (c *Case) gone(ctx context.Context, file string) {
	script := `p=$(cat "$1") || exit 0
i=0
while kill -0 "$p" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' /proc/$p/status 2>/dev/null; do
	[ $i -ge 50 ] && exit 9
	i=$((i+1)); sleep 0.1
done
exit 0`
	if r := c.script(ctx, script, c.path(file)); r.exit != 0 || r.failure != nil {
		c.errorf("a process of the command still runs (exit %d, %v)", r.exit, r.failure)
	}
}

// watcher calls found when want has been written.
type watcher struct {
	b     strings.Builder
	want  string
	found func()
}

func (w *watcher) Write(p []byte) (int, error) {
	w.b.Write(p)
	if w.found != nil && strings.Contains(w.b.String(), w.want) {
		w.found()
		w.found = nil
	}
	return len(p), nil
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)
