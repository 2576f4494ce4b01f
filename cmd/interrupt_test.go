//go:build unix

package cmd

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// A signal ends a run in good order at each moment of its life: no machine is left, the
// exit status tells the signal, and what was finished is here.
func TestOneSignalEndsARunInGoodOrder(t *testing.T) {
	command := func(text string) modeltest.Step {
		input, _ := json.Marshal(map[string]string{"command": text})
		return modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: string(input)}}}
	}
	work := command("echo x > made.txt")
	moments := []struct {
		name  string
		setup string
		steps []modeltest.Step
		come  func(l *chaosLife, said string) bool
		work  bool // something was finished
	}{
		{name: "while the machine is made", come: func(l *chaosLife, _ string) bool { return len(l.cloud.Requests("create")) > 0 }},
		{name: "while the project goes up", come: func(_ *chaosLife, said string) bool { return strings.Contains(said, "is ready after") }},
		{name: "while the setup runs", setup: "echo begun; sleep 60", come: func(_ *chaosLife, said string) bool { return strings.Contains(said, "| begun") }},
		{name: "while the model thinks", steps: []modeltest.Step{work, {Text: "x", Hang: true}}, work: true,
			come: func(l *chaosLife, _ string) bool { return len(l.model.Requests()) > 1 }},
		{name: "while a command runs", steps: []modeltest.Step{work, command("sleep 60")}, work: true,
			come: func(_ *chaosLife, said string) bool { return strings.Contains(said, "sleep 60") }},
		{name: "while changes come home", steps: []modeltest.Step{work, {Text: "All done."}}, work: true,
			come: func(_ *chaosLife, said string) bool { return strings.Contains(said, "this conversation is kept") }},
	}
	gate := make(chan struct{}, 4) // so many at once
	var wg sync.WaitGroup
	for _, m := range moments {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			gate <- struct{}{}
			wg.Go(func() {
				defer func() { <-gate }()
				t.Run(m.name+"/"+sig.String(), func(t *testing.T) {
					l := newLife(t, "daytona", rand.New(rand.NewPCG(1, 1)))
					defer l.cloud.Close()
					defer func() { l.model.Close() }()
					l.model.Close()
					l.model = modeltest.Start()
					l.model.Script(m.steps...)
					l.model.Forever(modeltest.Step{Text: "Done."})
					l.env = append(l.env, "OPENAI_BASE_URL="+l.model.OpenAI())
					args := []string{"--sandbox", "daytona", "--yolo", "-p", "Do it"}
					if m.setup != "" {
						name := filepath.Join(t.TempDir(), "setup.sh")
						os.WriteFile(name, []byte(m.setup), 0o600)
						args = append(args, "--sandbox-setup", name)
					}
					log, err := os.Create(filepath.Join(t.TempDir(), "log"))
					if err != nil {
						t.Fatal(err)
					}
					defer log.Close()
					cmd := exec.Command("talkops", args...)
					cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.project, l.env, log, log
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					said := func() string { data, _ := os.ReadFile(log.Name()); return string(data) }
					for until := time.Now().Add(time.Minute); !m.come(l, said()); time.Sleep(5 * time.Millisecond) {
						if time.Now().After(until) {
							cmd.Process.Kill()
							cmd.Wait()
							t.Fatalf("the moment did not come:\n%s", said())
						}
					}
					cmd.Process.Signal(sig)
					err = cmd.Wait()
					status := -1
					if e, ok := errors.AsType[*exec.ExitError](err); ok {
						status = e.ExitCode()
					}
					if status != 128+int(sig) {
						t.Errorf("the exit status is %d, want %d:\n%s", status, 128+int(sig), said())
					}
					if boxes := l.cloud.Boxes(); len(boxes) != 0 {
						t.Errorf("left are the machines %v:\n%s", boxes, said())
					}
					if strings.Contains(said(), "was perhaps made") { // the signal came before the answer: prune makes sure
						if err := l.run("sandbox", "prune"); err != nil {
							l.fail("prune: %v", err)
						}
					}
					if leases, err := os.ReadDir(filepath.Join(l.home, "leases")); err != nil || len(leases) != 0 {
						t.Errorf("left on record: %v, %v", leases, err)
					}
					if !m.work {
						return
					}
					if err := l.run("sandbox", "apply"); err != nil {
						l.fail("apply: %v", err)
					}
					if _, err := os.Stat(filepath.Join(l.project, "made.txt")); err != nil {
						t.Errorf("what was finished is lost: %v\n%s", err, said())
					}
				})
			})
		}
	}
	wg.Wait()
}
