package rest_test

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/internal/rest"
)

func TestFormIsReadBack(t *testing.T) {
	body, kind := rest.Form("path", "/a b/\"c\"", "file", "c", strings.NewReader("one\r\n"), strings.NewReader("two"))
	_, params, err := mime.ParseMediaType(kind)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(body.Parts()); n != 4 {
		t.Errorf("got %d parts", n)
	}
	form, err := multipart.NewReader(body, params["boundary"]).ReadForm(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := form.Value["path"]; len(got) != 1 || got[0] != "/a b/\"c\"" {
		t.Errorf("path: got %q", got)
	}
	files := form.File["file"]
	if len(files) != 1 || files[0].Filename != "c" {
		t.Fatalf("files: %v", files)
	}
	f, err := files[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "one\r\ntwo" {
		t.Errorf("got %q, %v", data, err)
	}
}
