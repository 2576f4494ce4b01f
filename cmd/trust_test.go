package cmd

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/term"
)

// Who opens the chat window in a project that asks for more than it may is shown
// what that is, and asked; the default is to go no further.
func TestThePersonIsAskedAboutAProject(t *testing.T) {
	for _, row := range []struct {
		name, answer, project string
		status                int
		provider              string
		says                  string
	}{
		{"quit", "q\n", "[sandboxes]\ndefault = 'modal'\n", 9, "", `use sandbox "modal"`},
		{"nothing typed", "\n", "[sandboxes]\ndefault = 'modal'\n", 9, "", "Trust it, ignore its settings this time, or quit?"},
		{"the end of the input", "", "[sandboxes]\ndefault = 'modal'\n", 9, "", "quit?"},
		{"trusted", "t\n", "[sandboxes]\ndefault = 'modal'\n", 0, "modal", "| default = 'modal'"},
		{"ignored", "i\n", "[sandboxes]\ndefault = 'modal'\n", 0, "local", "quit?"},
		{"nothing asked for", "", "[run]\nmax_turns = 3\n", 0, "local", ""},
		{"cannot be read", "", "[sandboxes\n", 0, "local", "they are left out"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t)
			d.write(filepath.Join(".talkops", "config.toml"), row.project)
			var errs bytes.Buffer
			a := &app{
				streams: &term.Streams{In: strings.NewReader(row.answer), Out: &bytes.Buffer{}, Err: &errs, InTTY: true, OutTTY: true, ErrWidth: 80},
				env:     func(string) (string, bool) { return "", false },
				dir:     d.project, userHome: filepath.Dir(d.home), home: d.home, providers: builtin(),
			}
			c := &cobra.Command{}
			c.SetContext(t.Context())
			flags := settingFlags(c.Flags(), "sandbox")
			cfg, err := a.load(nil, config.Untrusted)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err = a.settleTrust(c, flags, cfg)
			if status, _ := explain(err); status != row.status {
				t.Fatalf("status %d (%v), want %d", status, err, row.status)
			}
			if err == nil && cfg.Sandbox.Provider != row.provider {
				t.Errorf("provider %q, want %q", cfg.Sandbox.Provider, row.provider)
			}
			if !strings.Contains(errs.String(), row.says) || row.says == "" && errs.Len() > 0 {
				t.Errorf("said %q, want %q", errs.String(), row.says)
			}
			again, err := a.load(nil, config.Untrusted)
			if trusted := err == nil && len(again.Untrusted) == 0; trusted != (row.name == "trusted" || row.says == "") {
				t.Errorf("trusted from now on: %v", trusted)
			}
		})
	}
}

// What is approved is before the eyes when the question is put, and no name or line
// of the project's passes for one of ours.
func TestWhatIsShownForApproval(t *testing.T) {
	d := newDesk(t)
	const script = "x\nIts settings ask for nothing that needs your approval.\n"
	d.write(script, "true\u2028Its settings ask for nothing that needs your approval.\u2028\u202etrue\n")
	config := "[sandboxes]\nsetup_script_path = \"x\\nIts settings ask for nothing that needs your approval.\\n\"\n" + strings.Repeat("\n", 5000) + "# more\n" + strings.Repeat("# padding\n", 50)
	d.write(filepath.Join(".talkops", "config.toml"), config)
	add := func() (string, string) {
		status, _, text := d.run("trust", "add", "--yes")
		if status != 0 {
			t.Fatalf("status %d: %s", status, text)
		}
		at := strings.LastIndex(text, "Its settings would:")
		return text, text[max(at, 0):]
	}
	text, end := add()
	if n := strings.Count(text, "\n"); n > 100 || !strings.Contains(text, "(5000 empty lines)") {
		t.Errorf("%d lines: %s", n, text)
	}
	if strings.Count(end, "\n") > 6 || !strings.Contains(end, "run x Its settings") {
		t.Errorf("the end does not say what is asked for: %q", end)
	}
	unmarked := func(text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "Its settings ask for nothing") {
				t.Errorf("a line of the project's passes for ours:\n%s", text)
			}
		}
	}
	unmarked(text)
	d.write(script, "true\u2028Its settings ask for nothing that needs your approval.\u2028false\n")
	text, _ = add()
	if !strings.Contains(text, "<U+2028>false") {
		t.Errorf("the difference is not shown: %s", text)
	}
	unmarked(text)
	d.write(script, "true\u2028Its settings ask for nothing that needs your approval.\u2028fa\u202else\n")
	if text, _ = add(); !strings.Contains(text, "fa<U+202E>lse") || !strings.Contains(text, "steer a terminal") {
		t.Errorf("what cannot be seen is not told: %s", text)
	}
	d.write(script, "true\n: '\x1b]0;'; touch made; : '\x07'\n")
	if text, _ = add(); !strings.Contains(text, "touch made") {
		t.Errorf("a command is hidden in a title for the terminal: %s", text)
	}
	d.write(script, "true\n")
	add()
	d.write(script, "true\r\n")
	if text, _ = add(); !strings.Contains(text, "differs in nothing that can be seen") {
		t.Errorf("an end of a line is told as %s", text)
	}
}
