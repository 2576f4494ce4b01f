package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// recordTwoTurns records a call and an answer made in dir.
func recordTwoTurns(t *testing.T, dir string) (string, model.Request) {
	t.Helper()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "Looking.", Calls: []modeltest.Call{{ID: "a", Name: "ls", Input: `{"path":"` + dir + `/src"}`}}},
		modeltest.Step{Text: "There is main.tf in " + dir + ", and " + key})
	m, err := model.Open(t.Context(), model.Config{Provider: "lab", Name: "x", BaseURL: srv.OpenAI()})
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	m = model.NewRecording(&file, dir, mask{key}).Of(m)
	req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Text: "what is in " + dir}}}
	first, err := m.Answer(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := model.Request{Messages: append(req.Messages, first.Message,
		model.Message{Role: model.RoleTool, Results: []model.Result{{CallID: "a", Name: "ls", Text: dir + "/src/main.tf"}}})}
	if _, err := m.Answer(t.Context(), second, nil); err != nil {
		t.Fatal(err)
	}
	return file.String(), req
}

func TestReplayAnswersAsRecordedInAnotherDirectory(t *testing.T) {
	file, _ := recordTwoTurns(t, "/home/ann/project")
	if strings.Contains(file, "/home/ann") || strings.Contains(file, key) {
		t.Fatalf("the recording holds the directory or a secret:\n%s", file)
	}
	var notices []string
	m, err := model.Replay(strings.NewReader(file), "/workspace", func(s string) { notices = append(notices, s) })
	if err != nil {
		t.Fatal(err)
	}
	req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Text: "what is in /workspace"}}}
	var s seen
	first, err := m.Answer(t.Context(), req, s.emit)
	if err != nil {
		t.Fatal(err)
	}
	if first.Message.Calls[0].Input != `{"path":"/workspace/src"}` || s.text != "Looking." {
		t.Errorf("got %+v, shown %q", first.Message, s.text)
	}
	req.Messages = append(req.Messages, first.Message,
		model.Message{Role: model.RoleTool, Results: []model.Result{{CallID: "a", Name: "ls", Text: "/workspace/src/other.tf"}}})
	second, err := m.Answer(t.Context(), req, nil)
	if err != nil || second.Message.Text != "There is main.tf in /workspace, and ***" {
		t.Errorf("got %q, %v", second.Message.Text, err)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "result of ls differs") {
		t.Errorf("notices are %q, want one about the result of ls", notices)
	}
	if _, err := m.Answer(t.Context(), req, nil); !errors.Is(err, model.ErrNotRecorded) || !strings.Contains(err.Error(), "turn 3") {
		t.Errorf("a third turn gives %v", err)
	}
}

func TestReplayRefusesAnotherShape(t *testing.T) {
	file, req := recordTwoTurns(t, "/workspace")
	m, err := model.Replay(strings.NewReader(file), "/workspace", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Answer(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, first.Message,
		model.Message{Role: model.RoleTool, Results: []model.Result{{CallID: "a", Name: "grep", Text: "x"}}})
	if _, err := m.Answer(t.Context(), req, nil); !errors.Is(err, model.ErrNotRecorded) {
		t.Errorf("got %v, want not recorded", err)
	}
}

// mask blots out one word.
type mask struct{ secret string }

func (m mask) Text(s string) string { return strings.ReplaceAll(s, m.secret, "***") }
func (m mask) JSON(b []byte) []byte { return []byte(m.Text(string(b))) }
