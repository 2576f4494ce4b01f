package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// TestAuthorsPage holds sdk/README.md to the program: its table of languages is
// written from it (-update), the others are complete, and its messages are
// messages.
func TestAuthorsPage(t *testing.T) {
	file := filepath.Join("..", "sdk", "README.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	part := func(name string) (string, int, int) {
		start, end, err := between(text, "<!-- "+name+" -->\n", "<!-- end -->")
		if err != nil {
			t.Fatal(err)
		}
		return text[start:end], start, end
	}

	rows := [][]string{{"`--lang`", "Needs", "Build"}}
	for _, l := range languages() {
		rows = append(rows, []string{"`" + l.name + "`", l.needs, "`" + l.line + "`"})
	}
	if got, start, end := part("languages"); got != table(rows...) {
		text = text[:start] + table(rows...) + text[end:]
		if !*update {
			t.Error("the table of languages is not true any more; go test ./cmd -run TestAuthorsPage -update")
		} else if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	types := strings.NewReplacer("i", "i32 ", "I", "i64 ", "b", "block ")
	functions, _, _ := part("functions")
	for _, f := range abi.Functions() {
		row := "| `" + f.Name + "` | `" + strings.TrimSpace(types.Replace(f.Params)+"→ "+types.Replace(f.Result)) + "` | "
		if !strings.Contains(functions, row) {
			t.Errorf("there is no row %s…", row)
		}
	}
	if got, want := strings.Count(functions, "\n| `"), len(abi.Functions()); got != want {
		t.Errorf("%d host functions are told of, there are %d", got, want)
	}
	exports, _, _ := part("exports")
	all := append([]string{abi.Marker}, append(abi.Required(), abi.Optional()...)...)
	for _, e := range all {
		if !strings.Contains(exports, "\n| `"+e+"` | ") {
			t.Errorf("the export %s is not told of", e)
		}
	}
	if got := strings.Count(exports, "\n| `"); got != len(all) {
		t.Errorf("%d exports are told of, there are %d", got, len(all))
	}
	kinds, _, _ := part("kinds")
	for _, m := range regexp.MustCompile("(?:^|· )`([a-z_]+)`").FindAllStringSubmatch(strings.ReplaceAll(kinds, "·\n", "· "), -1) {
		if got := (&abi.Error{Kind: m[1]}).Sandbox().Code; string(got) != m[1] {
			t.Errorf("the kind %s is %s", m[1], got)
		}
	}

	messages := map[string]any{
		"Description": &abi.Description{}, "OpenRequest": &abi.OpenRequest{}, "Opened": &abi.Opened{}, "ExecRequest": &abi.ExecRequest{},
		"FileRequest": &abi.FileRequest{}, "Listing": &abi.Listing{}, "HTTPRequest": &abi.HTTPRequest{}, "HTTPMode": &abi.HTTPMode{},
	}
	for _, m := range regexp.MustCompile(`(?m)^<!-- json (\w+) -->\n((?:    .*\n)+)`).FindAllStringSubmatch(text, -1) {
		d := json.NewDecoder(strings.NewReader(m[2]))
		d.DisallowUnknownFields()
		if into := messages[m[1]]; into == nil {
			t.Errorf("there is no message %s, or it is shown twice", m[1])
		} else if err := d.Decode(into); err != nil {
			t.Errorf("the example of %s: %v", m[1], err)
		}
		delete(messages, m[1])
	}
	for name := range messages {
		t.Errorf("there is no example of %s", name)
	}
}
