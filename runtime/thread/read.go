package thread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/talkops-ai/talkops/runtime/model"
)

// read reads a file and tells how many of its bytes are whole lines.
func (s Store) read(id string) (*Thread, int64, error) {
	data, err := os.ReadFile(s.file(id))
	if err != nil {
		return nil, 0, err
	}
	t := &Thread{Head: Head{ID: id}}
	whole, bad := int64(0), 0
	for line := range bytes.Lines(data) {
		if line[len(line)-1] != '\n' {
			t.Lost = "its last line was torn off by a crash"
			break
		}
		whole += int64(len(line))
		var r Record
		if json.Unmarshal(line, &r) != nil {
			if len(bytes.TrimSpace(line)) > 0 {
				bad++
			}
			continue
		}
		t.take(r)
	}
	switch {
	case t.Started.IsZero() && whole > 0:
		return nil, whole, fmt.Errorf("%w: %s does not begin like one", ErrBroken, s.file(id))
	case bad > 0:
		t.Lost = fmt.Sprintf("%d of its lines cannot be read", bad)
	}
	if len(t.ended) > 0 {
		t.Messages = append(t.Messages, model.Message{Role: model.RoleTool, Results: t.ended})
	}
	t.Messages = Mend(t.Messages)
	return t, whole, nil
}

func (t *Thread) take(r Record) {
	if r.At.After(t.Last) {
		t.Last = r.At
	}
	switch {
	case r.Head != nil:
		id := t.ID
		t.Head = *r.Head
		t.ID = id
	case r.Machine != nil:
		t.Machine = *r.Machine
	case r.Result != nil:
		t.ended = append(t.ended, *r.Result)
	case r.Message != nil:
		if r.Message.Role != model.RoleTool && len(t.ended) > 0 { // talkops was stopped in the middle of a step, and went on
			t.Messages = append(t.Messages, model.Message{Role: model.RoleTool, Results: t.ended})
		}
		t.ended = nil
		t.Messages = append(t.Messages, *r.Message)
		if r.Message.Role == model.RoleUser {
			if t.Turns++; t.Title == "" {
				t.Title = strings.Join(strings.Fields(r.Message.Text), " ")
			}
		}
	case r.Used != nil:
		t.Usage = r.Used.Usage
		t.CostUSD += r.Used.CostUSD
	case len(r.Compact) > 0:
		t.Messages = r.Compact
		t.Usage = model.Usage{}
	}
}

const unknownEnd = "It is not known whether this ran or how it ended: talkops was stopped. Look before you do it again."

// Mend returns messages such that a model takes them: each call has its result, and
// each result its call.
func Mend(messages []model.Message) []model.Message {
	var out []model.Message
	var open []model.Call
	settle := func(got []model.Result) {
		if len(open) == 0 {
			return
		}
		results := make([]model.Result, len(open))
		for i, c := range open {
			results[i] = model.Result{CallID: c.ID, Name: c.Name, Text: unknownEnd, Failed: true}
			for _, r := range got {
				if r.CallID == c.ID {
					results[i] = r
				}
			}
		}
		out = append(out, model.Message{Role: model.RoleTool, Results: results})
		open = nil
	}
	for _, m := range messages {
		if m.Role == model.RoleTool {
			settle(m.Results)
			continue
		}
		settle(nil)
		out = append(out, m)
		open = m.Calls
	}
	settle(nil)
	return out
}
