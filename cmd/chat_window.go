package cmd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/term"
	"github.com/talkops-ai/talkops/runtime/thread"
	"github.com/talkops-ai/talkops/runtime/tui"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// window is an empty chat window with the looks that the user wants.
func (a *app) window(cfg *config.Config) *tui.Window {
	text := func(name string) string {
		s, _ := cfg.Value(name).Value.(string)
		return s
	}
	w := &tui.Window{
		Theme: text("ui.theme"), Plain: cfg.Value("ui.plain").Value == true, In: os.Stdin, Out: os.Stdout, Width: a.streams.OutWidth, Environ: a.environ,
		Notify: tui.Notice(text("ui.notify"), func(name string) string { v, _ := a.env(name); return v }),
		Editor: a.editPrompt,
	}
	if !a.streams.Color {
		w.Theme = tui.ThemeNone
	}
	h := history{file: filepath.Join(a.home, "history", nameOf(cfg.Root)+".jsonl"), mask: func(s string) string { return a.redact.Text(s) }}
	w.History = h.load()
	w.Remember = func(text string) {
		if err := h.add(text); err != nil {
			w.Note("what you send is not remembered: " + err.Error())
		}
	}
	return w
}

// nameOf is a file name for a directory.
func nameOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

// saidIn is what was said in a conversation, without the work between.
func saidIn(messages []model.Message) []tui.Said {
	var said []tui.Said
	for i, m := range messages {
		if m.Role == model.RoleUser && strings.HasPrefix(m.Text, reminding) || i > 0 && m.Text == reminded && strings.HasPrefix(messages[i-1].Text, reminding) {
			continue // talkops told the model
		}
		if i > 0 && m.Text == sawIt && strings.HasPrefix(messages[i-1].Text, ranMyself) {
			continue // the model did not say it
		}
		if m.Text != "" && m.Role != model.RoleTool {
			text, user := m.Text, m.Role == model.RoleUser
			if user {
				text = asTyped(text)
			}
			said = append(said, tui.Said{User: user, Text: text})
		}
	}
	return said
}

// spoken reports whether anything was said.
func (c *conversation) spoken() bool { return len(c.agent.History) > 0 }

// A history is what the user sent in one project: a file of JSON texts, a line each.
type history struct {
	file string
	mask func(string) string
}

const (
	historyShown = 1000    // texts
	historyMost  = 4 << 20 // bytes; then the older half goes
	historyText  = 64 << 10
)

// load reads what was sent last. What cannot be read is left out.
func (h history) load() []string {
	data, err := os.ReadFile(h.file)
	if err != nil {
		return nil
	}
	var list []string
	for line := range bytes.Lines(data) {
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" {
			list = append(list, text)
		}
	}
	return list[max(len(list)-historyShown, 0):]
}

// add keeps a text, without secrets. Larger ones are not worth it.
func (h history) add(text string) error {
	if len(text) > historyText {
		return nil
	}
	line, err := json.Marshal(h.mask(text))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(h.file); err == nil && info.Size() > historyMost {
		data, err := os.ReadFile(h.file)
		if err != nil {
			return err
		}
		rest := data[len(data)/2:]
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
		tmp := h.file + ".new"
		if err := errors.Join(os.WriteFile(tmp, rest, 0o600), os.Rename(tmp, h.file)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(h.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// editPrompt opens what is being typed in the user's editor.
func (a *app) editPrompt(text string) (*tui.Editing, error) {
	if err := os.MkdirAll(a.home, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(a.home, "prompt-*.md")
	if err != nil {
		return nil, err
	}
	name := f.Name()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	words := a.editor()
	return &tui.Editing{Cmd: exec.Command(words[0], append(words[1:], name)...), Read: func() (string, error) {
		data, err := os.ReadFile(name)
		return string(data), errors.Join(err, os.Remove(name))
	}}, nil
}

// listFiles names the files below the start directory, without what is not worth it. With
// an argument it does not ask git.
const listFiles = `if [ -z "$1" ] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  git -c core.fsmonitor=false -c core.quotePath=off ls-files -co --exclude-standard
else
  find . \( -name .git -o -name node_modules -o -name .terraform -o -name .venv -o -name __pycache__ \) -prune -o \( -type f -o -type l \) -print | sed 's|^\./||'
fi 2>/dev/null | head -n 20000`

// Choices implements tui.Session.
func (c *conversation) Choices(ctx context.Context, kind tui.Kind) ([]tui.Choice, error) {
	if kind == tui.Conversations {
		return choices(c.app.conversations(c.cfg.Root), c.kept.id()), nil
	}
	var out bytes.Buffer
	alone := ""
	if c.place.Host && gitRuns(c.box.Dir) {
		alone = "git would run what the repository names"
	}
	exit, err := c.box.Sandbox.Exec(ctx, sandbox.Cmd{Args: []string{"/bin/sh", "-c", listFiles, "sh", alone}, Dir: c.box.Dir, Env: onlyLooks, Stdout: &out})
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	if exit != 0 {
		return nil, fmt.Errorf("list the files: exit %d", exit)
	}
	var list []tui.Choice
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		list = append(list, tui.Choice{Value: term.Clean(lines.Text())})
	}
	return list, nil
}

// choices are conversations to choose from, but one.
func choices(list []*thread.Thread, but string) []tui.Choice {
	var out []tui.Choice
	for _, t := range list {
		if t.ID == but {
			continue
		}
		out = append(out, tui.Choice{Value: t.ID, Label: term.Clean(asTyped(t.Title)), Detail: fmt.Sprintf("%s, %s, %s", age(t.Last), workspace.Count(t.Turns, "prompt"), placeName(t.Machine))})
	}
	return out
}

// chooseThread lets the user choose a conversation of this project. One alone needs
// no choice.
func (a *app) chooseThread(ctx context.Context, cfg *config.Config) (string, error) {
	list := choices(a.conversations(cfg.Root), "")
	if len(list) < 2 {
		return lastThread, nil
	}
	w := a.window(cfg)
	if w.Plain {
		for i, c := range list {
			fmt.Fprintf(a.streams.Out, "%d: %s (%s)\n", i+1, c.Label, c.Detail)
		}
		answer, err := a.ask(ctx, "Which one? ")
		n := 0
		if fmt.Sscan(answer, &n); err == nil && (n < 1 || n > len(list)) {
			err = &usageError{"no conversation was chosen"}
		}
		if err != nil {
			return "", err
		}
		return list[n-1].Value, nil
	}
	chosen, ok, err := w.Pick(ctx, "go on with:", list)
	if err == nil && !ok {
		err = &usageError{"no conversation was chosen"}
	}
	return chosen.Value, err
}
