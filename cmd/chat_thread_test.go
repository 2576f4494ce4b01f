//go:build unix

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

func daytona(cloud *daytonatest.Server) map[string]string {
	return map[string]string{"DAYTONA_API_KEY": cloud.Key(), "DAYTONA_API_URL": cloud.URL()}
}

// kill ends talkops in the pane at once, as a crash would.
func (p *pane) kill() {
	p.t.Helper()
	shell := strings.TrimSpace(p.tmux("display-message", "-p", "#{pane_pid}"))
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[1] != shell {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == p.bin {
			syscall.Kill(pid, syscall.SIGKILL)
			p.await(`ended with 137`)
			return
		}
	}
	p.t.Skip("the process cannot be found here")
}

// TestChatSurvivesAKill kills the chat in the middle of a call: the conversation
// goes on in the very machine, and its work comes home.
func TestChatSurvivesAKill(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "I will remember kestrel."}, execute("a", "echo first > first.txt; sleep 300"))
	cloud := daytonatest.New(t)
	p := inTerminal(t, 100, 30, srv, daytona(cloud), "--sandbox", "daytona", "--smart", "-m", "Remember kestrel")
	p.await(`I will remember kestrel`)
	p.say("Work")
	p.await(`sleep 300.* \d+\.\ds`)
	p.kill()
	if len(cloud.Boxes()) != 1 {
		t.Fatalf("machines: %v", cloud.Boxes())
	}
	srv.Script(modeltest.Step{Text: "It was kestrel."})
	p = p.again(srv, daytona(cloud), "-r")
	p.await(`is there again`)
	p.await(`(?s)Remember kestrel.*I will remember kestrel\..*This conversation goes on`)
	p.await(`DAYTONA box-\d+`)
	p.say("Which word?")
	p.await(`It was kestrel`)
	if body := srv.Requests()[2].Body; !strings.Contains(body, "It is not known whether this ran") || !strings.Contains(body, "Remember kestrel") {
		t.Errorf("the model is told %s", body)
	}
	p.say("/exit")
	p.await(`A first\.txt`)
	p.say("p")
	p.await(`patch: `)
	p.await(`ended with 0`)
	if left := cloud.Boxes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAConversationIsChosen goes on with one of several, and keeps its machine.
func TestAConversationIsChosen(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "About pods."}, modeltest.Step{Text: "About nodes."}, execute("a", "echo kept > kept.txt"), modeltest.Step{Text: "Pods again."})
	p := inTerminal(t, 100, 30, srv, nil, "-m", "Tell of pods")
	p.await(`About pods`)
	p.say("/clear")
	p.await(`The old one is kept`)
	p.say("Tell of nodes")
	p.await(`About nodes`)
	p.say("/exit")
	p.await(`ended with 0`)
	cloud := daytonatest.New(t)
	p = p.again(srv, daytona(cloud), "-r", "--sandbox", "daytona", "--smart")
	p.await(`(?s)go on with:.*2 of 2.*> Tell of nodes`)
	p.tmux("send-keys", "-l", "pods")
	p.await(`> Tell of pods`)
	p.keys("Enter")
	p.await(`worked on this computer; it goes on with daytona`)
	p.await(`(?s)Tell of pods.*About pods\..*This conversation goes on`)
	p.say("More")
	p.await(`Pods again`)
	p.say("/exit")
	p.await(`\[k\]eep the machine`)
	p.say("k")
	p.await(`is kept; it ends by itself`)
	p.await(`ended with 0`)
	if n := len(cloud.Boxes()); n != 1 {
		t.Errorf("%d machines run, want the one that is kept", n)
	}
	srv.Script(execute("b", "cat kept.txt"), modeltest.Step{Text: "It is there."})
	p = p.again(srv, daytona(cloud), "-p", "Look", "-r")
	p.await(`is there again`)
	p.await(`It is there`)
	p.await(`ended with 0`)
	if n := len(cloud.Boxes()); n != 0 {
		t.Errorf("%d machines run", n)
	}
}

func TestChatConversations(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "One it is."}, modeltest.Step{Text: "Two it is."}, modeltest.Step{Status: 400}, modeltest.Step{Text: "SUMMED UP"}, modeltest.Step{Text: "Still one."})
	p := inTerminal(t, 100, 30, srv, nil)
	p.await(`THIS COMPUTER`)
	p.say("The first matter")
	p.await(`One it is`)
	p.say("/clear")
	p.await(`The old one is kept: /resume`)
	p.say("The second matter")
	p.await(`Two it is`)
	if body := srv.Requests()[1].Body; strings.Contains(body, "first matter") {
		t.Error("a new conversation knows of the old one")
	}
	p.say("/resume")
	p.await(`go on with:.*1 of 1`)
	p.keys("Enter")
	p.await(`(?s)Going on with.*› The first matter.*One it is\..*This conversation goes on`)
	p.say("/compact")
	p.await(`could not be made shorter`)
	p.say("/compact")
	p.await(`Summed up: about`)
	if n := strings.Count(strings.Join(strings.Fields(p.screen()), " "), "rejected the request"); n != 1 {
		t.Errorf("a failure is said %d times:\n%s", n, p.screen())
	}
	p.say("What now?")
	p.await(`Still one`)
	if body := srv.Requests()[4].Body; !strings.Contains(body, "SUMMED UP") {
		t.Errorf("the model is told %s", body)
	}
	p.say("/nosuch")
	p.await(`there is no command /nosuch`)
	p.say("/comapct")
	p.await(`is it /compact\?`)
	p.say("/doctor")
	p.await(`ok +this computer runs a command`)
	p.say("/trust")
	p.await(`(?i)no project`)
	p.say("/exit")
	p.await(`this conversation is kept; to go on with it: talkops -r`)
	p.await(`ended with 0`)
}

func TestChatShowsAChangeBeforeItIsMade(t *testing.T) {
	for _, width := range []int{60, 140} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			srv := modeltest.New(t)
			srv.Script(modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "edit_file", Input: `{"file_path":"deploy.yaml","old_string":"replicas: 1","new_string":"replicas: 3"}`}}},
				modeltest.Step{Text: "Scaled."})
			p := inTerminal(t, width, 30, srv, nil)
			p.await(`THIS COMPUTER`)
			file := filepath.Join(p.dir, "deploy.yaml")
			if err := os.WriteFile(file, []byte("kind: Deployment\nreplicas: 1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			p.say("Scale it")
			p.await(`May this run\?`)
			p.await(`\+1 -1: changes\s+/`)
			if width < 120 {
				p.await(`(?s)2 -replicas: 1.*2 \+replicas: 3`)
			} else {
				p.await(`2 -replicas: 1 +│ 2 \+replicas: 3`)
			}
			if data, _ := os.ReadFile(file); strings.Contains(string(data), "3") {
				t.Error("it was changed before it was allowed")
			}
			p.keys("y")
			p.await(`Scaled\.`)
			if data, _ := os.ReadFile(file); !strings.Contains(string(data), "replicas: 3") {
				t.Errorf("the file is %q", data)
			}
		})
	}
}

func TestChatInput(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Forever(modeltest.Step{Text: "Seen."})
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/draft/finished/' \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := inTerminal(t, 100, 30, srv, map[string]string{"VISUAL": editor})
	p.await(`THIS COMPUTER`)
	for _, name := range []string{"main.tf", "modules/vpc/main.tf", "notes.md"} {
		os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.tmux("send-keys", "-l", "look at @")
	p.await(`file on this computer:.*3 of 3`)
	p.tmux("send-keys", "-l", "vpc")
	p.await(`> modules/vpc/main\.tf`)
	p.keys("Enter")
	p.await(`› look at @modules/vpc/main\.tf`)
	p.keys("Enter")
	p.await(`Seen`)
	if body := srv.Requests()[0].Body; !strings.Contains(body, "look at @modules/vpc/main.tf") {
		t.Errorf("the model is told %s", body)
	}
	p.tmux("set-buffer", strings.Repeat("a pasted line\n", 40))
	p.tmux("paste-buffer", "-p")
	p.await(`\[pasted 40 lines\]`)
	p.keys("Enter")
	for end := 0; len(srv.Requests()) < 2 && end < 600; end++ {
		p.await(`Seen`)
	}
	if body := srv.Requests()[1].Body; strings.Count(body, "a pasted line") < 40 {
		t.Errorf("what was pasted is not sent whole")
	}
	p.say("a draft")
	p.await(`› a draft`)
	p.tmux("send-keys", "-l", "my draft")
	p.keys("C-g")
	p.await(`› my finished`)
	p.keys("Enter")
	p.await(`(?s)› my finished.*Seen`)
	p.say("/exit")
	p.await(`ended with 0`)

	p = p.again(srv, nil)
	p.await(`THIS COMPUTER`)
	p.keys("C-r")
	p.await(`sent before:.*5 of 5`)
	p.tmux("send-keys", "-l", "vpc")
	p.keys("Enter")
	p.await(`› look at @modules/vpc/main\.tf`)
	files, _ := filepath.Glob(filepath.Join(p.home, "history", "*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("histories: %v", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history has mode %v, %v", info.Mode(), err)
	}
}

func TestPlainChat(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(execute("a", "echo made > made.txt; echo said"), modeltest.Step{Text: "I made it."}, execute("b", "touch no.txt"), modeltest.Step{Text: "Then not."})
	p := inTerminal(t, 100, 30, srv, map[string]string{"TALKOPS_PLAIN": "1"})
	p.await(`Commands run on this computer\. Mode manual\.`)
	p.say("Make it")
	p.await(`Question: may this run on this computer\?`)
	p.await(`Answer: y once`)
	p.say("y")
	p.await(`(?s)Runs execute on this computer: echo made.*\| said.*Ended with exit 0.*I made it\..*Ready\.`)
	p.say("More")
	p.await(`touch no\.txt`)
	p.say("n")
	p.await(`Why not\?`)
	p.say("not today")
	p.await(`Then not\.`)
	if !strings.Contains(srv.Requests()[3].Body, "not today") {
		t.Error("the model is not told why")
	}
	p.say("/exit")
	p.await(`ended with 0`)
	if strings.Contains(p.tmux("capture-pane", "-p", "-e", "-S", "-500"), "\x1b[") {
		t.Error("it draws")
	}
}

// TestWhatWasSaidStays interrupts an answer: the model knows how far it came.
func TestWhatWasSaidStays(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "Half of an answer", Hang: true}, modeltest.Step{Text: "Going on."})
	p := inTerminal(t, 100, 30, srv, nil, "-m", "Tell me")
	p.await(`(?m)^Hal`)
	p.keys("Escape")
	p.await(`(?s)Hal.*Interrupted\.`)
	p.say("Go on")
	p.await(`Going on\.`)
	if body := srv.Requests()[1].Body; !strings.Contains(body, "Hal") || !strings.Contains(body, "[broken off here]") {
		t.Errorf("the model is told %s", body)
	}
}

// TestAKillBetweenTwoCalls says which of them ended.
func TestAKillBetweenTwoCalls(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Calls: []modeltest.Call{{ID: "a", Name: "execute", Input: `{"command":"echo heard of kestrels"}`}, {ID: "b", Name: "execute", Input: `{"command":"sleep 300"}`}}})
	p := inTerminal(t, 100, 30, srv, nil, "--yolo", "-m", "Do both")
	p.await(`sleep 300.* \d+\.\ds`)
	p.kill()
	srv.Script(modeltest.Step{Text: "The first one ended."})
	p = p.again(srv, nil, "-r", "--yolo", "-m", "What ended?")
	p.await(`The first one ended`)
	body := srv.Requests()[1].Body
	if !strings.Contains(body, "heard of kestrels\\n") || strings.Count(body, "It is not known whether this ran") != 1 {
		t.Errorf("the model is told %s", body)
	}
}

// TestOldConversationsGo deletes what is older than threads.max_age, and not the one
// that goes on.
func TestOldConversationsGo(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Forever(modeltest.Step{Text: "Heard."})
	p := terminal(t)
	dir := filepath.Join(p.home, "threads")
	for i := range 2 {
		p.start(100, 30, srv, map[string]string{"TALKOPS_PLAIN": "1"}, "-m", fmt.Sprintf("Matter %d", i))
		p.await(`(?s)Heard.*Ready`)
		if i > 0 && !strings.Contains(p.screen(), "removed: 1 conversation that nobody went on with for 180 days") {
			t.Errorf("it is not said what is removed:\n%s", p.screen())
		}
		p.say("/exit")
		p.await(`ended with 0`)
		files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if len(files) != 1 {
			t.Errorf("kept: %v", files)
		}
		for _, file := range files {
			old := time.Now().Add(-400 * 24 * time.Hour)
			os.Chtimes(file, old, old)
		}
		os.Remove(filepath.Join(dir, ".tidied"))
		p.tmux("kill-server")
		p.socket = filepath.Join(t.TempDir(), "s")
	}
	p.start(100, 30, srv, map[string]string{"TALKOPS_PLAIN": "1"}, "-r")
	p.await(`(?s)You: Matter 1.*Heard\..*This conversation goes on`)
	if strings.Contains(p.screen(), "removed:") {
		t.Error("the conversation that goes on is removed")
	}
}

// TestOnesOwnCommandIsShownAsItWasTyped looks at a conversation that began with one.
func TestOnesOwnCommandIsShownAsItWasTyped(t *testing.T) {
	t.Parallel()
	srv := modeltest.New(t)
	srv.Script(modeltest.Step{Text: "Seen."}, modeltest.Step{Text: "Hello."})
	p := inTerminal(t, 100, 30, srv, nil)
	p.await(`mode manual`)
	p.say("!echo by me")
	p.await(`(?m)^  by me`)
	p.say("What was it?")
	p.await(`Seen\.`)
	p.say("/clear")
	p.await(`A new conversation`)
	p.say("Say hello")
	p.await(`Hello\.`)
	p.say("/resume")
	p.await(`(?s)go on with:.*> !echo by me  `)
	p.keys("Enter")
	p.await(`(?s)Going on with.*› !echo by me\s+› What was it\?\s+Seen\.\s+This conversation goes on`)
	if strings.Contains(p.screen(), "I ran this command myself") {
		t.Errorf("what the model is told is shown as typed:\n%s", p.screen())
	}
}
