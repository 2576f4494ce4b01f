package thread_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/thread"
)

func begin(t *testing.T, s thread.Store) *thread.Writer {
	t.Helper()
	w, err := s.Begin(thread.Head{Project: "/p", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Message(user("hello")); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestAStepThatWasBrokenOffSaysWhatEnded reads a conversation that was stopped between
// two calls of one step, and one that went on after that.
func TestAStepThatWasBrokenOffSaysWhatEnded(t *testing.T) {
	s := thread.Store{Dir: t.TempDir()}
	w := begin(t, s)
	w.Message(assistant("both", "a", "b"))
	w.Result(results("a").Results[0])
	w.Close()
	check := func(got *thread.Thread) {
		t.Helper()
		i := slices.IndexFunc(got.Messages, func(m model.Message) bool { return m.Role == model.RoleTool })
		if i < 0 || len(got.Messages[i].Results) != 2 {
			t.Fatalf("the step has no results: %+v", got.Messages)
		}
		r := got.Messages[i].Results
		if r[0].Text != "out of a" || r[0].Failed {
			t.Errorf("the call that ended is %+v", r[0])
		}
		if !strings.Contains(r[1].Text, "not known") || !r[1].Failed {
			t.Errorf("the call that did not end is %+v", r[1])
		}
	}
	w, got, err := s.Resume(w.Head.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(got)
	w.Message(user("go on"))
	w.Message(assistant("two more", "c", "d"))
	w.Result(results("c").Results[0])
	w.Message(results("c", "d"))
	w.Close()
	got, err = s.Read(w.Head.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(got)
	if last := got.Messages[len(got.Messages)-1]; len(got.Messages) != 6 || len(last.Results) != 2 || last.Results[1].Text != "out of d" {
		t.Errorf("a whole step is %+v", got.Messages)
	}
}

func TestPruneLeavesWhatIsYoungOrInUse(t *testing.T) {
	s := thread.Store{Dir: t.TempDir()}
	age := map[string]time.Duration{"old": 40, "young": 10, "in use": 40, "going on": 40}
	ids := map[string]string{}
	for name, days := range age {
		w := begin(t, s)
		ids[name] = w.Head.ID
		at := time.Now().Add(-days * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(s.Dir, w.Head.ID+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
		if name != "in use" {
			w.Close()
		} else {
			defer w.Close()
		}
	}
	gone, err := s.Prune(time.Now().Add(-30*24*time.Hour), ids["going on"])
	if err != nil || len(gone) != 1 || gone[0] != ids["old"] {
		t.Errorf("got %v, %v, want %v", gone, err, ids["old"])
	}
	for name, id := range ids {
		if _, err := s.Read(id); (err == nil) == (name == "old") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
