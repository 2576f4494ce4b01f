package conform

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func lifeRules() []Rule {
	return []Rule{
		{"C193", "the working directory exists, is writable and is what pwd -P says", func(ctx context.Context, c *Case) {
			dir := c.Sandbox.Info().Dir
			if !path.IsAbs(dir) {
				c.fatalf("Info.Dir is %q", dir)
			}
			r := c.exec(ctx, sandbox.Cmd{Dir: dir, Args: []string{"/bin/sh", "-c", "pwd -P; [ -w . ]"}})
			c.want(r, 0, dir+"\n", "")
			if r := c.exec(ctx, sandbox.Cmd{Dir: dir, Args: []string{"pwd"}}); r.out != dir+"\n" {
				c.errorf("pwd says %q", r.out)
			}
		}},
		{"C194", "a fresh sandbox is known by its id before it is ready", func(ctx context.Context, c *Case) {
			c.needsFresh()
			spec := c.Spec
			var early string
			spec.Created = func(i sandbox.Info) { early = i.ID }
			c.fresh(ctx, spec, func(sb sandbox.Sandbox) {
				if early == "" || early != sb.Info().ID {
					c.errorf("Created was told %q, the id is %q", early, sb.Info().ID)
				}
			})
		}},
		{"C199", "cancelling an opening leaves nothing running", func(ctx context.Context, c *Case) {
			c.needsFresh()
			spec := c.Spec
			spec.Labels = map[string]string{"app": "talkops", "run": "conform-" + time.Now().UTC().Format("150405.000000")}
			open, cancel := context.WithCancel(ctx)
			spec.Created = func(sandbox.Info) { cancel() }
			sb, err := c.Provider.Open(open, spec)
			cancel()
			if err == nil {
				c.Provider.Destroy(ctx, c.named(sb))
				c.skip("the machine was ready before it could be cancelled")
			}
			if !errors.Is(err, context.Canceled) {
				c.errorf("error %v is not context.Canceled", err)
			}
			c.noneListed(ctx, spec)
		}},
		{"C207", "an attached sandbox is the same machine, and is left running", func(ctx context.Context, c *Case) {
			c.needsFresh()
			if !c.Provider.Describe().Features.Attach {
				c.skip("this provider does not attach")
			}
			c.write(ctx, "f", "here")
			spec := c.named(c.Sandbox)
			spec.Token = ""
			sb, err := c.Provider.Open(ctx, spec)
			if err != nil {
				c.fatalf("attach: %v", err)
			}
			var b strings.Builder
			if err := sb.ReadFile(ctx, c.path("f"), &b); err != nil || b.String() != "here" {
				c.errorf("read %q, %v", b.String(), err)
			}
			if err := sb.Close(); err != nil {
				c.errorf("close: %v", err)
			}
			c.want(c.script(ctx, "echo still"), 0, "still\n", "")
		}},
		{"C208", "an unknown id is not_found, and nothing is made instead", func(ctx context.Context, c *Case) {
			c.needsFresh()
			if !c.Provider.Describe().Features.Attach {
				c.skip("this provider does not attach")
			}
			spec := c.Spec
			spec.ID = "00000000-0000-0000-0000-000000000000"
			spec.Created = func(sandbox.Info) { c.errorf("a machine was made") }
			_, err := c.Provider.Open(ctx, spec)
			c.code(err, sandbox.CodeNotFound)
		}},
		{"C217", "ending twice, and ending what is gone, succeeds", func(ctx context.Context, c *Case) {
			c.needsFresh()
			sb, err := c.Provider.Open(ctx, c.Spec)
			if err != nil {
				c.fatalf("open: %v", err)
			}
			for range 2 {
				if err := c.Provider.Destroy(ctx, c.named(sb)); err != nil {
					c.errorf("destroy: %v", err)
				}
			}
			exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"true"}})
			if err == nil {
				c.errorf("a command in the ended sandbox returned %d without an error", exit)
			} else {
				c.code(err, sandbox.CodeGone, sandbox.CodeNotFound)
			}
		}},
		{"C219", "a sandbox is listed by its labels until it is ended", func(ctx context.Context, c *Case) {
			c.needsFresh()
			if _, ok := sandbox.As[sandbox.Lister](c.Provider); !ok {
				c.skip("this provider does not list")
			}
			spec := c.Spec
			spec.Labels = map[string]string{"app": "talkops", "run": "conform-" + time.Now().UTC().Format("150405.000000")}
			c.fresh(ctx, spec, func(sb sandbox.Sandbox) {
				list, err := sandbox.List(ctx, c.Provider, spec)
				if err != nil || len(list) != 1 || list[0].ID != sb.Info().ID {
					c.errorf("list is %+v, %v; want %s", list, err, sb.Info().ID)
				}
			})
			c.noneListed(ctx, spec)
		}},
		{"C221", "what cannot be done is unsupported at once, and nothing else", func(ctx context.Context, c *Case) {
			if _, ok := sandbox.As[sandbox.Snapshotter](c.Sandbox); !ok {
				c.code(sandbox.Snapshot(ctx, c.Sandbox, "x"), sandbox.CodeUnsupported)
			}
			// An end that is already further away is kept.
			if _, err := sandbox.Extend(ctx, c.Sandbox, time.Now()); err != nil {
				c.code(err, sandbox.CodeUnsupported)
			}
			if _, ok := sandbox.As[sandbox.Lister](c.Provider); !ok {
				_, err := sandbox.List(ctx, c.Provider, c.Spec)
				c.code(err, sandbox.CodeUnsupported)
			}
		}},
		{"C262", "without a key: unauthenticated", func(ctx context.Context, c *Case) {
			d := c.Provider.Describe()
			if len(d.Logins) == 0 {
				c.skip("there is nothing to sign in to")
			}
			spec := c.Spec
			spec.Settings = map[string]string{}
			for k, v := range c.Spec.Settings {
				if s, _ := d.Setting(k); !s.Secret {
					spec.Settings[k] = v
				}
			}
			_, err := c.Provider.Open(ctx, spec)
			c.code(err, sandbox.CodeUnauthenticated)
		}},
	}
}

// needsFresh skips a rule that makes machines where there are none to make.
func (c *Case) needsFresh() {
	if c.Provider.Describe().Features.Host {
		c.skip("the sandbox is this computer")
	}
	if c.Spec.ID != "" {
		c.skip("the check is of one attached machine")
	}
}

// fresh opens a sandbox for use and ends it.
func (c *Case) fresh(ctx context.Context, spec sandbox.Spec, use func(sandbox.Sandbox)) {
	sb, err := c.Provider.Open(ctx, spec)
	if err != nil {
		c.fatalf("open: %v", err)
	}
	defer func() {
		sb.Close()
		if err := c.Provider.Destroy(ctx, c.named(sb)); err != nil {
			c.errorf("destroy: %v", err)
		}
	}()
	use(sb)
}

// noneListed checks that no machine with those labels is left, allowing for a
// list that lags behind.
func (c *Case) noneListed(ctx context.Context, spec sandbox.Spec) {
	if _, ok := sandbox.As[sandbox.Lister](c.Provider); !ok {
		return
	}
	for try := 0; ; try++ {
		list, err := sandbox.List(ctx, c.Provider, spec)
		if err == nil && len(list) == 0 {
			return
		}
		if try == 20 || ctx.Err() != nil {
			c.errorf("still listed: %+v, %v", list, err)
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
