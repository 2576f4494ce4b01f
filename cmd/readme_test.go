package cmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/talkops-ai/talkops/providers"
	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/rubric"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var update = flag.Bool("update", false, "write the generated tables into README.md")

// TestReadmeTables holds the tables of README.md to the program. Each stands
// between a comment with its name and <!-- end -->.
func TestReadmeTables(t *testing.T) {
	file := filepath.Join("..", "README.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, want := range map[string]string{"settings": settingsTable(), "providers": providersTable(), "exits": exitsTable()} {
		start, end, err := between(text, "<!-- "+name+" -->\n", "<!-- end -->")
		if err != nil {
			t.Fatalf("README.md: %s: %v", name, err)
		}
		if got := text[start:end]; got == want {
			continue
		} else if !*update {
			t.Errorf("README.md: the table of %s is not true any more; go test ./cmd -run TestReadmeTables -update\ngot:\n%s\nwant:\n%s", name, got, want)
			continue
		}
		text = text[:start] + want + text[end:]
	}
	if *update && text != string(data) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// between finds what stands between two marks.
func between(text, open, end string) (int, int, error) {
	i := strings.Index(text, open)
	if i < 0 {
		return 0, 0, fmt.Errorf("no mark %q", open)
	}
	i += len(open)
	n := strings.Index(text[i:], end)
	if n < 0 {
		return 0, 0, fmt.Errorf("no mark %q after %q", end, open)
	}
	return i, i + n, nil
}

// table writes rows for Markdown, the first as the heading.
func table(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// code sets words as code, separated by commas.
func code(words ...string) string {
	var quoted []string
	for _, w := range words {
		if w != "" {
			quoted = append(quoted, "`"+w+"`")
		}
	}
	return strings.Join(quoted, ", ")
}

func settingsTable() string {
	rows := [][]string{{"Setting", "In a file", "Environment", "Flag", "Default", "Meaning"}}
	for _, k := range slices.Concat(config.Keys(), config.TableKeys()) {
		f := ""
		if k.Flag != "" {
			f = "--" + k.Flag
		}
		help := k.Help
		if len(k.Enum) > 0 {
			help += ": " + code(k.Enum...)
		}
		rows = append(rows, []string{code(k.Name), code(k.Paths...), code(k.Env...), code(f), code(config.Format(k.Default)), help})
	}
	return table(rows...)
}

func providersTable() string {
	rows := [][]string{{"`--sandbox`", "Provider", "Sign in", "Default folder", "Can", "Cannot", "Checked by", "Verified live"}}
	for _, p := range providers.Builtin() {
		d := p.Describe()
		signIn, dir := "not needed", "the current folder"
		if d.SignIn != "" {
			signIn = code(d.SignIn)
		}
		if d.Dir != "" {
			dir = code(d.Dir)
		}
		checked, live := "the contract", "yes"
		if !d.Features.Host {
			checked, live = "the contract, "+vendorClient(d.Name), "no"
		}
		_, lists := sandbox.As[sandbox.Lister](p)
		can, cannot := features(d.Features, lists)
		rows = append(rows, []string{code(d.Name), d.Title, signIn, dir, can, cannot, checked, live})
	}
	return table(rows...)
}

// features words what a provider declares.
func features(f sandbox.Features, lists bool) (can, cannot string) {
	if f.Host {
		return "run at once", "isolate anything"
	}
	var yes, no []string
	for _, row := range []struct {
		has  bool
		word string
	}{
		{f.Attach, "attach"}, {f.Snapshot, "snapshots"}, {f.Image, "images"}, {f.Lifetime, "lifetime"}, {f.Idle, "idle limit"},
		{f.Labels, "labels"}, {lists, "list"},
	} {
		if row.has {
			yes = append(yes, row.word)
		} else {
			no = append(no, row.word)
		}
	}
	return strings.Join(yes, ", "), cmp.Or(strings.Join(no, ", "), "–")
}

// vendorClient names the vendor's own client that make test-vendors runs.
func vendorClient(name string) string {
	data, err := os.ReadFile(filepath.Join("..", "providers", name, name+"test", "vendor-client", "package.json"))
	if err != nil {
		return err.Error()
	}
	var p struct{ Dependencies map[string]string }
	if err := json.Unmarshal(data, &p); err != nil {
		return err.Error()
	}
	var clients []string
	for _, name := range slices.Sorted(maps.Keys(p.Dependencies)) {
		clients = append(clients, code(name+" "+p.Dependencies[name]))
	}
	return strings.Join(clients, ", ")
}

// An exit is a row of the table of exit statuses.
type exit struct {
	status        int
	word, meaning string
}

func exits() []exit {
	of := func(err error, meaning string) exit {
		status, word := classify(err)
		return exit{status, word, meaning}
	}
	return []exit{
		of(nil, "done"),
		of(errors.New("any"), "the model, its service or talkops failed"),
		of(&usageError{}, "the command line, a setting or a key is missing or wrong; found before anything is started"),
		of(rubric.ErrUnmet, "with `--rubric`: the work does not meet the criteria, or cannot"),
		{exitRefused, "permission_needed", "a tool call needed a person's permission and nobody could be asked; the answer is printed all the same"},
		of(&session.StartError{}, "the sandbox could not be made, reached or set up; nothing ran on this computer instead"),
		{exitSandbox, "sandbox_lost", "the sandbox ended while it was in use"},
		of(&session.UnsavedError{}, "the changes could not be fetched, and the sandbox is left running and named if it is still there; or they are kept, but not all could be applied or exported"),
		of(agent.ErrBudget, "`--max-cost-usd` is reached"),
		of(agent.ErrTurns, "`--max-turns` is reached"),
		of(&untrustedError{}, "the project's own settings ask for more than they may; see [Trust](#trust)"),
		of(errRunTimeout, "`--timeout` is reached"),
		{exitExec, "", "`talkops sandbox exec` only: talkops itself failed; every other status is the command's"},
		of(&signalError{syscall.SIGHUP}, "ended in good order by HUP"),
		of(&signalError{syscall.SIGINT}, "ended in good order by INT (Ctrl-C)"),
		of(&signalError{syscall.SIGTERM}, "ended in good order by TERM"),
	}
}

func exitsTable() string {
	rows := [][]string{{"Exit", "`reason`", "Meaning"}}
	for _, e := range exits() {
		rows = append(rows, []string{strconv.Itoa(e.status), code(e.word), e.meaning})
	}
	return table(rows...)
}

// TestReadmeNamesEveryExit finds exit constants that the table leaves out.
func TestReadmeNamesEveryExit(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "exit") || i >= len(spec.Values) {
				continue
			}
			lit, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				continue
			}
			seen++
			status, _ := strconv.Atoi(lit.Value)
			if !slices.ContainsFunc(exits(), func(e exit) bool { return e.status == status }) {
				t.Errorf("%s = %d is not in README.md's table", name.Name, status)
			}
		}
		return true
	})
	if seen < 8 {
		t.Errorf("only %d exit constants were found", seen)
	}
}
