//go:build unix

package cmd

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/model/modeltest"
)

// A command may remove the working directory, in which some clouds then start nothing
// any more. That is told, waited for in vain by nobody, and the machine is kept.
func TestACommandThatRemovesItsDirectory(t *testing.T) {
	slow(t)
	for name := range clouds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, name, rand.New(rand.NewPCG(1, 1)))
			defer l.cloud.Close()
			l.model.Close()
			l.model = modeltest.Start()
			defer l.model.Close()
			l.env = append(l.env, "OPENAI_BASE_URL="+l.model.OpenAI())
			for _, command := range []string{"echo first > first", `rm -rf "$PWD"`, "ls"} {
				input, _ := json.Marshal(map[string]string{"command": command})
				l.model.Script(modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: string(input)}}})
			}
			l.model.Script(modeltest.Step{Text: "Done."})
			status, said := l.talkops("--sandbox", name, "--yolo", "-p", "Do it")
			if status != exitExport || !strings.Contains(said, "keeps your work") || strings.Contains(said, "waiting for the changes") {
				t.Errorf("status %d\n%s", status, said)
			}
			if _, said := l.talkops("sandbox", "list"); !strings.Contains(said, "may hold unsaved work") {
				t.Error(said)
			}
		})
	}
}
