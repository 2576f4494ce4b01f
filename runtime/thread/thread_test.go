package thread_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/thread"
)

// TestMain lets a test run this program as one that writes until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("THREAD_TEST_WRITE"); dir != "" {
		write(dir)
		return
	}
	os.Exit(m.Run())
}

// write adds messages for ever and says how many are written.
func write(dir string) {
	w, err := thread.Store{Dir: dir}.Begin(thread.Head{Project: "/p", Started: time.Now()})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if err := w.Message(user(fmt.Sprintf("message %d %s", i, strings.Repeat("x", 10_000)))); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

func user(text string) model.Message { return model.Message{Role: model.RoleUser, Text: text} }

func assistant(text string, calls ...string) model.Message {
	m := model.Message{Role: model.RoleAssistant, Text: text}
	for _, id := range calls {
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "execute", Input: `{"command":"ls"}`})
	}
	return m
}

func results(ids ...string) model.Message {
	m := model.Message{Role: model.RoleTool}
	for _, id := range ids {
		m.Results = append(m.Results, model.Result{CallID: id, Name: "execute", Text: "out of " + id})
	}
	return m
}

func TestWhatIsSaidIsReadBack(t *testing.T) {
	s := thread.Store{Dir: filepath.Join(t.TempDir(), "threads")}
	w, err := s.Begin(thread.Head{Project: "/p", Started: time.Now(), Model: "acme:m"})
	if err != nil {
		t.Fatal(err)
	}
	said := []model.Message{user("do\nit"), assistant("I look", "a"), results("a"), assistant("done")}
	said[1].Reasoning = []model.Reasoning{{Text: "hm", Opaque: []byte{0, 1, 255}}}
	for _, m := range said {
		if err := w.Message(m); err != nil {
			t.Fatal(err)
		}
	}
	machine := thread.Machine{Provider: "daytona", ID: "box-1", Run: "r", Dir: "/w", Fresh: true, Expires: time.Now().UTC().Truncate(time.Second)}
	w.Machine(machine)
	w.Used(thread.Used{Usage: model.Usage{Input: 10}, CostUSD: 0.5})
	w.Used(thread.Used{Usage: model.Usage{Input: 20}, CostUSD: 0.5})
	got, err := s.Read(w.Head.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Messages, said) || got.Machine != machine || got.CostUSD != 1 || got.Usage.Input != 20 || got.Title != "do it" || got.Turns != 1 || got.Lost != "" {
		t.Errorf("got %+v", got)
	}
	if info, _ := os.Stat(filepath.Join(s.Dir, w.Head.ID+".jsonl")); info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("its file has mode %v", info.Mode())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnlyOneMayWrite(t *testing.T) {
	s := thread.Store{Dir: t.TempDir()}
	w, err := s.Begin(thread.Head{Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	w.Message(user("hi"))
	if _, _, err := s.Resume(w.Head.ID); !errors.Is(err, thread.ErrInUse) {
		t.Errorf("a second writer gets %v", err)
	}
	if err := s.Delete(w.Head.ID); !errors.Is(err, thread.ErrInUse) {
		t.Errorf("deleting gives %v", err)
	}
	if !s.InUse(w.Head.ID) {
		t.Error("it is not in use")
	}
	w.Close()
	again, got, err := s.Resume(w.Head.ID[len(w.Head.ID)-8:])
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	again.Message(assistant("yes"))
	again.Close()
	if list, err := s.List(); err != nil || len(list) != 1 || len(list[0].Messages) != 2 {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := s.Delete(w.Head.ID); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := s.Read("nothing"); !errors.Is(err, thread.ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestAConversationWithoutAWordLeavesNothing(t *testing.T) {
	s := thread.Store{Dir: t.TempDir()}
	w, err := s.Begin(thread.Head{Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	w.Machine(thread.Machine{Provider: "local"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestEveryCutIsRead cuts a file at each byte: what was whole is there, and the
// conversation goes on.
func TestEveryCutIsRead(t *testing.T) {
	s := thread.Store{Dir: t.TempDir()}
	w, err := s.Begin(thread.Head{Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Message{user("wörk"), assistant("", "a", "b"), results("a", "b")} {
		w.Message(m)
	}
	w.Close()
	name := filepath.Join(s.Dir, w.Head.ID+".jsonl")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n') + 1
	for n := first; n < len(whole); n++ {
		if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		w, got, err := s.Resume(w.Head.ID)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		lines := strings.Count(string(whole[:n]), "\n") - 1
		want := lines
		if lines == 2 {
			want = 3 // the calls have got results
		}
		if torn := whole[n-1] != '\n'; torn != (got.Lost != "") {
			t.Errorf("cut at %d: lost %q", n, got.Lost)
		}
		if len(got.Messages) != want {
			t.Errorf("cut at %d: %d messages, want %d", n, len(got.Messages), want)
		}
		if err := w.Message(user("next")); err != nil {
			t.Fatal(err)
		}
		w.Close()
		again, err := s.Read(w.Head.ID)
		if err != nil || again.Lost != "" || again.Messages[len(again.Messages)-1].Text != "next" {
			t.Fatalf("cut at %d, then: %+v, %v", n, again, err)
		}
	}
}

// TestKilledWriter kills a process that writes, without a warning.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "THREAD_TEST_WRITE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := -1
	for lines := bufio.NewScanner(out); lines.Scan() && written < 200; {
		fmt.Sscan(lines.Text(), &written)
	}
	cmd.Process.Kill()
	cmd.Wait()
	s := thread.Store{Dir: dir}
	list, err := s.List()
	if err != nil || len(list) != 1 || len(list[0].Messages) < written {
		t.Fatalf("%d conversations, %v", len(list), err)
	}
	w, got, err := s.Resume(list[0].ID)
	if err != nil {
		t.Fatalf("the lock outlives its holder: %v", err)
	}
	defer w.Close()
	for i, m := range got.Messages {
		if !strings.HasPrefix(m.Text, fmt.Sprintf("message %d ", i)) {
			t.Fatalf("message %d is %.20q", i, m.Text)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	const secret = "sk-very-secret-123\"\n"
	s := thread.Store{Dir: t.TempDir(), Mask: redact.New(secret).JSON}
	w, err := s.Begin(thread.Head{Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	input, _ := json.Marshal(map[string]string{"command": "export K=" + secret})
	w.Message(user("it is " + secret))
	w.Message(model.Message{Role: model.RoleAssistant, Calls: []model.Call{{ID: "a", Name: "execute", Input: string(input)}}})
	data, _ := os.ReadFile(filepath.Join(s.Dir, w.Head.ID+".jsonl"))
	if strings.Contains(string(data), "very-secret") {
		t.Errorf("the file tells it: %s", data)
	}
	if got, err := s.Read(w.Head.ID); err != nil || len(got.Messages) != 3 || got.Lost != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMend(t *testing.T) {
	for _, row := range []struct {
		name string
		give []model.Message
		want string
	}{
		{"whole", []model.Message{user("x"), assistant("", "a"), results("a"), assistant("y")}, "user assistant tool[a] assistant"},
		{"stopped in a call", []model.Message{user("x"), assistant("", "a", "b")}, "user assistant tool[a? b?]"},
		{"gone on after that", []model.Message{user("x"), assistant("", "a"), user("y")}, "user assistant tool[a?] user"},
		{"half of the results", []model.Message{user("x"), assistant("", "a", "b"), results("b")}, "user assistant tool[a? b]"},
		{"results of nothing", []model.Message{user("x"), results("z"), assistant("y")}, "user assistant"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := shape(thread.Mend(row.give)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func shape(messages []model.Message) string {
	var words []string
	for _, m := range messages {
		word := string(m.Role)
		if m.Role == model.RoleTool {
			var ids []string
			for _, r := range m.Results {
				id := r.CallID
				if r.Failed {
					id += "?"
				}
				ids = append(ids, id)
			}
			word += fmt.Sprint(ids)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// A scribe is a model that sums up.
type scribe struct {
	window int
	asked  model.Request
	err    error
}

func (s *scribe) Info() model.Info { return model.Info{Window: s.window} }

func (s *scribe) Answer(_ context.Context, req model.Request, _ func(model.Delta)) (model.Answer, error) {
	s.asked = req
	return model.Answer{Message: assistant("SUMMARY"), Usage: model.Usage{Input: 7}}, s.err
}

func TestCompactKeepsCallsAndResultsTogether(t *testing.T) {
	messages := []model.Message{user("first wish: never touch prod")}
	for i := range 60 {
		id := fmt.Sprint("c", i)
		m := results(id)
		m.Results[0].Text = strings.Repeat("y", 50*(i%7))
		messages = append(messages, assistant("step", id), m)
		if i%9 == 8 {
			messages = append(messages, assistant("so far"), user(fmt.Sprintf("wish %d", i)))
		}
	}
	for n := 2; n <= len(messages); n++ {
		if messages[n-1].Role == model.RoleAssistant && len(messages[n-1].Calls) > 0 {
			continue // never at the end of what is sent
		}
		for _, window := range []int{500, 3000, 9000} {
			s := &scribe{window: window}
			short, used, err := thread.Compact(t.Context(), s, messages[:n])
			if err != nil && !errors.Is(err, thread.ErrShort) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if used.Input != 7 || !strings.Contains(short[0].Text, "SUMMARY") {
				t.Fatalf("%+v", short[0])
			}
			if got := thread.Mend(short); !reflect.DeepEqual(got, short) {
				t.Fatalf("%d messages, window %d: a call without its result: %s", n, window, shape(short))
			}
			last := messages[n-1]
			if short[len(short)-1].Role != last.Role || last.Role == model.RoleUser && short[len(short)-1].Text != last.Text {
				t.Fatalf("the last message is lost: %s", shape(short))
			}
			for i := 1; i < len(short); i++ {
				if short[i].Role == short[i-1].Role {
					t.Fatalf("%s follows itself: %s", short[i].Role, shape(short))
				}
			}
			if !strings.Contains(s.asked.Messages[0].Text, "never touch prod") || len(s.asked.Tools) > 0 {
				t.Fatal("the model that sums up does not see what was wished first")
			}
		}
	}
}

func TestCompactMakesAHugeResultFit(t *testing.T) {
	huge := results("a")
	huge.Results[0].Text = strings.Repeat("z", 100_000)
	short, _, err := thread.Compact(t.Context(), &scribe{window: 10_000}, []model.Message{user("x"), assistant("", "0"), results("0"), assistant("", "a"), huge})
	if err != nil {
		t.Fatal(err)
	}
	if n := thread.Tokens(short); n > 6000 {
		t.Errorf("%d tokens are left", n)
	}
}

func TestAFailedSummaryChangesNothing(t *testing.T) {
	if short, used, err := thread.Compact(t.Context(), &scribe{window: 100, err: errors.New("no")}, []model.Message{user("x"), assistant("y"), user("z")}); err == nil || short != nil || used.Input != 7 {
		t.Errorf("%v, %+v, %v", short, used, err)
	}
}
