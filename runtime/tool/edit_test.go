package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// TestAnEditIsKnownBeforeItIsMade asks what calls would change; nothing is changed.
func TestAnEditIsKnownBeforeItIsMade(t *testing.T) {
	dir := t.TempDir()
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: dir, Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "one\ntwo\n")
	write("b.bin", "a\x00b")
	os.Mkdir(filepath.Join(dir, "d"), 0o755)
	tools := map[string]tool.Tool{}
	for _, x := range tool.All(sb, tool.Options{}) {
		tools[x.Name()] = x
	}
	for _, row := range []struct {
		name, tool, input string
		want              tool.Edit
		err               string
	}{
		{"a new file", "write_file", `{"file_path":"new.txt","content":"x\n"}`, tool.Edit{New: true, After: []byte("x\n")}, ""},
		{"a file written over", "write_file", `{"file_path":"a.txt","content":"x\n"}`, tool.Edit{Before: []byte("one\ntwo\n"), After: []byte("x\n")}, ""},
		{"a part of a file", "edit_file", `{"file_path":"a.txt","old_string":"two","new_string":"2"}`, tool.Edit{Before: []byte("one\ntwo\n"), After: []byte("one\n2\n")}, ""},
		{"a part that is not there", "edit_file", `{"file_path":"a.txt","old_string":"three","new_string":"3"}`, tool.Edit{}, "does not occur"},
		{"a file deleted", "delete", `{"file_path":"a.txt"}`, tool.Edit{Before: []byte("one\ntwo\n"), Gone: true}, ""},
		{"a directory deleted", "delete", `{"file_path":"d"}`, tool.Edit{Gone: true, Note: "a directory, with all in it"}, ""},
		{"a binary file", "delete", `{"file_path":"b.bin"}`, tool.Edit{Gone: true, Note: "a binary file of 3 bytes"}, ""},
		{"a command", "execute", `{"command":"rm a.txt"}`, tool.Edit{}, errors.ErrUnsupported.Error()},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := tool.EditOf(t.Context(), tools[row.tool], row.input)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("got %v, want %q", err, row.err)
				}
				if u, is := errors.AsType[*tool.Unfit](err); is != (row.tool == "edit_file") {
					t.Errorf("that it does not fit: %v", is)
				} else if is {
					ran, err := tools[row.tool].Run(t.Context(), row.input, nil)
					if err != nil || ran.Text != u.Result.Text || ran.Code != u.Result.Code {
						t.Errorf("it is told as %+v, and when it runs as %+v, %v", u.Result, ran, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Before) != string(row.want.Before) || string(got.After) != string(row.want.After) || got.New != row.want.New || got.Gone != row.want.Gone || got.Note != row.want.Note {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
			if filepath.Dir(got.Path) != dir {
				t.Errorf("its path is %q", got.Path)
			}
		})
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("a.txt is %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("new.txt was made")
	}
}
