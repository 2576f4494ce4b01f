//go:build linux && (amd64 || arm64)

package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/talkops-ai/talkops/runtime/wasm/helper"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/practice"
)

// TestProviders tells the stories of testdata/providers with the tutorial's
// module and the practice service. Beside testscript's own commands a story has:
//
//	append FILE            add a byte to a file
//	boxes N                check that N boxes exist
//	config LINE…           write the user's config.toml
//	model FILE             start a model that follows a script, as for TestStories
//	signal NAME            send a signal to the background program
//	helpers N              wait until N processes of modules run
//	rm-all                 end every sandbox on record by its id
func TestProviders(t *testing.T) {
	module, err := os.ReadFile(wasmtest.Build(t, "github.com/talkops-ai/talkops/wasm-providers/acme/go"))
	if err != nil {
		t.Fatal(err)
	}
	p := practiced(func(e *testscript.Env) error {
		greedy := wasmtest.Source{Describe: `{"ok":{"abi":[1,0],"name":"greedy","features":{},"settings":[{"key":"other","env":["SHOP_API_KEY"]}]}}`}.Assemble()
		return errors.Join(os.WriteFile(filepath.Join(e.WorkDir, "acme.wasm"), module, 0o644), os.WriteFile(filepath.Join(e.WorkDir, "greedy.wasm"), greedy, 0o644))
	})
	p.Dir = filepath.Join("..", "testdata", "providers")
	testscript.Run(t, p)
}

// practiced gives stories the practice service at $PRACTICE, with its key.
func practiced(setup func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Setup: func(e *testscript.Env) error {
			s, err := practice.Start(practice.Config{})
			if err != nil {
				return err
			}
			e.Defer(s.Close)
			e.Values["practice"], e.Values["w"] = s, &stage{}
			e.Setenv("PRACTICE", s.URL())
			e.Setenv("PRACTICEKEY", s.Key())
			e.Setenv("BIN", filepath.SplitList(e.Getenv("PATH"))[0]) // where talkops is, and nothing else
			home, err := os.MkdirTemp("", "talkops-story-")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(home) })
			e.Setenv("HOME", home)
			e.Setenv("TALKOPS_HOME", filepath.Join(home, ".talkops"))
			e.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": startModel, "signal": sendSignal,
			"append": func(ts *testscript.TestScript, _ bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
				ts.Check(err)
				_, err = f.WriteString("\x00")
				ts.Check(err)
				ts.Check(f.Close())
			},
			"boxes": func(ts *testscript.TestScript, _ bool, args []string) {
				if got := ts.Value("practice").(*practice.Server).Boxes(); strconv.Itoa(len(got)) != args[0] {
					ts.Fatalf("there are %v, want %s", got, args[0])
				}
			},
			"helpers": awaitHelpers,
			"config": func(ts *testscript.TestScript, _ bool, args []string) {
				file := filepath.Join(ts.Getenv("TALKOPS_HOME"), "config.toml")
				ts.Check(os.MkdirAll(filepath.Dir(file), 0o700))
				ts.Check(os.WriteFile(file, []byte(strings.Join(args, "\n")+"\n"), 0o600))
			},
			"rm-all": func(ts *testscript.TestScript, _ bool, _ []string) {
				for _, id := range ts.Value("practice").(*practice.Server).Boxes() {
					ts.Check(ts.Exec("talkops", "sandbox", "rm", id))
				}
			},
		},
	}
}

// awaitHelpers waits until as many processes of modules run as the story says.
func awaitHelpers(ts *testscript.TestScript, _ bool, args []string) {
	cache := filepath.Join(ts.Getenv("TALKOPS_HOME"), "cache")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var found []string
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		ts.Check(err)
		for _, l := range lines {
			text, _ := os.ReadFile(l)
			cwd, _ := os.Readlink(filepath.Join(filepath.Dir(l), "cwd"))
			if strings.HasSuffix(string(text), "\x00"+helper.Arg+"\x00") && strings.HasPrefix(cwd, cache) {
				found = append(found, filepath.Dir(l))
			}
		}
		if strconv.Itoa(len(found)) == args[0] {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("there run %v, want %s", found, args[0])
		}
	}
}
