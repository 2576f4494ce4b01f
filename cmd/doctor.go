package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

// A health is what was looked at, line by line.
type health struct {
	lines []string
	bad   int // of what keeps talkops from working
}

// say adds a line: whether it is well, and what it is about.
func (h *health) say(good bool, format string, args ...any) {
	mark := "ok   "
	if !good {
		mark = "look "
	}
	h.lines = append(h.lines, mark+fmt.Sprintf(format, args...))
}

// fail adds a line about what keeps talkops from working, with what to do.
func (h *health) fail(format string, args ...any) {
	h.bad++
	h.lines = append(h.lines, "bad  "+fmt.Sprintf(format, args...))
}

func (a *app) doctorCommand(flags *given) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look whether talkops can work here: model, sign-in, terminal, git, settings, saved work", Args: usage(cobra.NoArgs),
		Example: "  talkops doctor\n  talkops doctor --sandbox daytona",
		RunE: func(c *cobra.Command, _ []string) error {
			h := &health{}
			cfg, err := a.loadFor(c, flags)
			if err != nil {
				h.fail("settings: %v", err)
			} else {
				a.redact = a.redactor(cfg)
				a.examine(c.Context(), cfg, h)
			}
			for _, l := range h.lines {
				fmt.Fprintln(a.streams.Out, term.Clean(a.redact.Text(l)))
			}
			if h.bad > 0 {
				return &exitStatus{exitError}
			}
			return nil
		},
	}
}

// examine looks at what talkops needs, without a network connection but for a model on
// this computer.
func (a *app) examine(ctx context.Context, cfg *config.Config, h *health) {
	endpoints := map[string]model.Endpoint{}
	for name, e := range cfg.Model.Providers {
		endpoints[name] = model.Endpoint{BaseURL: e.BaseURL, APIKeyEnv: e.APIKeyEnv}
	}
	wish := model.Wish{Providers: endpoints, Getenv: a.getenv(), Default: cfg.Model.Name}
	if cfg.Model.Explicit {
		wish.Model = cfg.Model.Name
	}
	if chosen, err := model.Choose(ctx, wish); err != nil {
		h.fail("model: %v", err)
	} else {
		h.say(true, "model %s:%s, and what it needs to sign in", chosen.Provider, chosen.Name)
	}
	if err := a.loadProvider(ctx, cfg, cfg.Sandbox.Provider); err != nil {
		h.fail("sandbox %s: %v", cfg.Sandbox.Provider, err)
	} else if p := a.providers.Find(cfg.Sandbox.Provider); p == nil {
		h.fail("sandbox: %v", config.Unknown(cfg.Sandbox.Provider, a.providers.Names(), cfg.Value("sandbox.provider").Origin.Where, a.home))
	} else if d := p.Describe(); d.Features.Host {
		h.say(true, "commands run on this computer; --sandbox chooses a machine")
	} else if _, err := registry.Settings(ctx, p, a.env); err != nil {
		h.fail("sandbox %s: %v", d.Name, err)
	} else {
		h.say(true, "sandbox %s: what it needs to sign in is set; whether the vendor takes it: talkops sandbox check %s", d.Name, d.Name)
	}
	kind, _ := a.env("TERM")
	h.say(a.canChat(cfg), "terminal %s, %d columns, colours: %v, the chat window: %v", cmp.Or(kind, "(TERM is not set)"), a.streams.ErrWidth, a.streams.Color, a.canChat(cfg))
	if path, err := exec.LookPath("git"); err != nil {
		h.say(false, "git is not on the PATH: branches and what git ignores need it")
	} else {
		h.say(true, "git is %s", path)
	}
	h.say(len(cfg.Warnings) == 0, "settings: %s; project %s", workspace.Count(len(cfg.Warnings), "warning"), cfg.Root)
	for _, w := range cfg.Warnings {
		h.say(false, "settings: %s", w)
	}
	a.examineHome(h)
}

// examineHome looks at what talkops keeps on this computer.
func (a *app) examineHome(h *health) {
	probe := filepath.Join(a.home, ".doctor")
	err := errors.Join(os.MkdirAll(a.home, 0o700), os.WriteFile(probe, nil, 0o600), os.Remove(probe))
	if err != nil {
		h.fail("%s cannot be written: %v", a.home, err)
	} else {
		h.say(true, "%s can be written", a.home)
	}
	leases, err := a.leases().List()
	if err != nil {
		h.say(false, "the record of machines: %v", err)
	}
	left := 0
	for _, l := range leases {
		if !l.Kept && !alive(l) {
			left++
		}
	}
	h.say(left == 0, "left of earlier runs: %s (talkops sandbox list)", workspace.Count(left, "machine"))
	list, err := a.threads().List()
	h.say(err == nil, "kept: %s", workspace.Count(len(list), "conversation"))
	if err != nil {
		h.say(false, "conversations: %v", err)
	}
	h.say(true, "the work of %s is saved (talkops sandbox diff)", workspace.Count(len(a.homes()), "run"))
}
