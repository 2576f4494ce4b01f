package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Files that the options call secret are left out of a search, and counted, unless the
// search is for one of them.
func TestGrepLeavesSecretsOut(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "word in a\n", "b.key": "word hidden\n", "c.key": "nothing\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: dir, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	var grep tool.Tool
	for _, x := range tool.All(sb, tool.Options{Secret: func(name string) bool { return strings.HasSuffix(name, ".key") }}) {
		if x.Name() == "grep" {
			grep = x
		}
	}
	for input, want := range map[string][2]string{
		`{"pattern":"word"}`:                  {"a.txt:1:word in a\n[left out: 1 ", "b.key"},
		`{"pattern":"word","output":"files"}`: {"a.txt\n[left out: 1 ", "b.key"},
		`{"pattern":"word","output":"count"}`: {"a.txt:1\n[left out: 1 ", "b.key"},
		`{"pattern":"word","glob":"*.key"}`:   {"[left out: 1 ", "b.key"},
		`{"pattern":"word","glob":"*.txt"}`:   {"word in a", "left out"},
		`{"pattern":"word","path":"b.key"}`:   {"b.key:1:word hidden", "left out"},
	} {
		r, err := grep.Run(t.Context(), input, nil)
		if err != nil || !strings.Contains(r.Text, want[0]) || strings.Contains(r.Text, want[1]) {
			t.Errorf("%s: %q, %v", input, r.Text, err)
		}
	}
}

// What is looked for is said, and where below the start directory; what holds blanks is
// quoted, and what is too long to show is not cut.
func TestASearchSaysWhatItLooksFor(t *testing.T) {
	dir := t.TempDir()
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: dir, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]tool.Tool{}
	for _, x := range tool.All(sb, tool.Options{Dir: "/home/acme"}) {
		tools[x.Name()] = x
	}
	for _, row := range [][3]string{
		{"grep", `{"pattern":"TODO"}`, "TODO"},
		{"grep", `{"pattern":"TODO","path":"."}`, "TODO"},
		{"grep", `{"pattern":"TODO","path":"src"}`, "TODO in src"},
		{"grep", `{"pattern":"TODO","path":"/home/acme/src/a"}`, "TODO in src/a"},
		{"grep", `{"pattern":"TODO","path":"/home/acmes"}`, "TODO in /home/acmes"},
		{"grep", `{"pattern":"TODO","path":"/"}`, "TODO in /"},
		{"grep", `{"pattern":"fix me","path":"src","glob":"*.go"}`, `"fix me" in src, only *.go`},
		{"grep", `{"pattern":"` + strings.Repeat("x", 5000) + `"}`, "a pattern of 5000 bytes"},
		{"glob", `{"pattern":"**/*.go"}`, "**/*.go"},
		{"glob", `{"pattern":"*.tf","path":"modules"}`, "*.tf in modules"},
		{"ls", `{"path":"src"}`, "/home/acme/src"},
		{"execute", `{"command":"make"}`, "make"},
	} {
		plan, err := tools[row[0]].Plan(row[1])
		if err != nil || plan.Says() != row[2] {
			t.Errorf("%s %.80s says %q, %v; want %q", row[0], row[1], plan.Says(), err, row[2])
		}
	}
}
