package abi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestTextKeepsEveryByte(t *testing.T) {
	for _, want := range []Text{"", "plain", "日本", "a\xffb\x00", `{"b64":"x"}`} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Text
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("%q became %s and then %q, %v", want, data, got, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"x":1}`), new(Text)); err == nil {
		t.Error("an object without b64 was taken for text")
	}
}

func TestErrorsKeepTheirKindAcrossTheWall(t *testing.T) {
	for code := range kinds {
		crossed, err := json.Marshal(FromError(fmt.Errorf("x: %w", &sandbox.Error{Code: code, Op: "read /a", Msg: "why"})))
		if err != nil {
			t.Fatal(err)
		}
		var e Error
		if err := json.Unmarshal(crossed, &e); err != nil {
			t.Fatal(err)
		}
		got := e.Sandbox()
		if sandbox.CodeOf(got) != code || code.Kind() != nil && !errors.Is(got, code.Kind()) || !strings.Contains(got.Error(), "why") {
			t.Errorf("%s came back as %v (%s)", code, got, sandbox.CodeOf(got))
		}
	}
	if got := (&Error{Kind: "no such kind"}).Sandbox(); got.Code != sandbox.CodeInternal {
		t.Errorf("an unknown kind is %s", got.Code)
	}
	if got := FromError(fs.ErrNotExist); got.Kind != "file_not_found" {
		t.Errorf("fs.ErrNotExist crosses as %q", got.Kind)
	}
}

func TestAnswersAreHeldToTheirForm(t *testing.T) {
	for answer, want := range map[string]string{
		``:                                  "no answer",
		`{"ok":{"exit":3}}`:                 "",
		`{"ok":{},"error":{"kind":"gone"}}`: "both",
		`{}`:                                "neither",
		`[1]`:                               "not JSON",
		`{"ok":[]}`:                         "another form",
		"{\"ok\":\"\xff\"}":                 "UTF-8",
		`{"error":{"kind":"gone","message":"it ended"}}`: "it ended",
	} {
		err := ReadReply([]byte(answer), &Exited{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
	}
}
