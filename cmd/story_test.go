package cmd

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var gap = flag.Duration("gap", 0, "how long the network is gone in stories; 0: as each says")

// buildDir is where tests build talkops, until all have run.
var buildDir = filepath.Join(os.TempDir(), fmt.Sprintf("talkops-test-%d", os.Getpid()))

// A tests runs all tests, and clears away what they built.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer os.RemoveAll(buildDir)
	return t.M.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"talkops": func() { os.Exit(Main()) }, "docs-server": docsServer})
}

// TestStories runs the whole program against a scripted model and an emulated
// cloud. Beside testscript's own commands a story has:
//
//	model FILE             start a model server that follows a script (JSON steps)
//	daytona [DELAY]        start the Daytona emulator and sign in to it
//	cloud NAME [DELAY]     start the emulator of a cloud and sign in to it
//	fault OP JSON          make the next calls of an operation fail, as daytonatest.Fault
//	behave JSON            make the whole service misbehave, as daytonatest.Behaviour
//	boxes N                check that N machines run
//	awaitbox               wait until a machine runs
//	forget                 remove every lease
//	box                    set $BOX to the id of the only machine
//	calls OP N             check how often an operation was asked for
//	asked TEXT             check that the model was shown a text
//	trap [clean]           start a server nobody may call, at $TRAP; check that nobody did
//	search FILE            start a SearXNG at $SEARCH, host $SEARCHHOST, that answers with a file
//	signal NAME            send a signal (INT, TERM, KILL; STOP, CONT) to the background program
//	unplug [refuse]        take the cloud's network away; refuse: connections break
//	heal                   take all faults back
//	storm STATUS           answer everything with that status and do nothing
//	plug [DELAY]           end both, after a while
//	[snapshots]            the cloud can keep the state of a machine, and remove it
//	await OP [N]           wait until that operation, or "model", has been asked for, N times
func TestStories(t *testing.T) { stories(t, "script", nil) }

// slow skips what takes long, and runs without -short only.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; make test and make ci run it")
	}
}

// TestClouds tells the stories of testdata/clouds with one cloud, or with -full with
// every one. It is named in $CLOUD.
func TestClouds(t *testing.T) {
	slow(t)
	for _, p := range builtin() {
		d := p.Describe()
		if d.Features.Host || d.Name != "daytona" && !*full {
			continue
		}
		t.Run(d.Name, func(t *testing.T) { stories(t, "clouds", map[string]string{"CLOUD": d.Name}) })
	}
}

func stories(t *testing.T, dir string, env map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "testdata", dir),
		Condition: func(cond string) (bool, error) {
			if cond != "snapshots" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, can := sandbox.As[sandbox.SnapshotRemover](builtin().Find(env["CLOUD"]))
			return can, nil
		},
		Setup: func(e *testscript.Env) error {
			for name, value := range env {
				e.Setenv(name, value)
			}
			home, err := os.MkdirTemp("", "talkops-story-")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(home) })
			e.Setenv("HOME", home)
			e.Setenv("TALKOPS_HOME", filepath.Join(home, ".talkops"))
			e.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			if root, err := filepath.Abs("../testdata"); err == nil {
				e.Setenv("TESTDATA", root)
			}
			e.Values["w"] = &stage{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": startModel, "daytona": startDaytona, "cloud": startCloud, "fault": inject, "behave": behave,
			"boxes": checkBoxes, "box": theBox, "awaitbox": awaitBox, "forget": forget, "calls": checkCalls, "asked": checkAsked, "await": await, "signal": sendSignal, "trap": setTrap, "search": startSearch,
			"unplug": unplug, "storm": storm, "heal": heal, "plug": plug,
		},
		RequireExplicitExec: false,
	})
}

// A stage is the servers of one story.
type stage struct {
	model *modeltest.Server
	cloud cloud
	trap  *trap
}

// A cloud is an emulated vendor.
type cloud interface {
	Settings() map[string]string
	Inject(daytonatest.Fault)
	Requests(op string) []daytonatest.Request
	Boxes() []string
	Close()
}

// clouds starts the emulated vendor of every built-in provider.
var clouds = map[string]func(delay time.Duration) (cloud, error){
	"modal":     func(d time.Duration) (cloud, error) { return modaltest.Start(modaltest.Config{StartDelay: d}) },
	"daytona":   func(d time.Duration) (cloud, error) { return daytonatest.Start(daytonatest.Config{StartDelay: d}) },
	"runloop":   func(d time.Duration) (cloud, error) { return runlooptest.Start(runlooptest.Config{StartDelay: d}) },
	"agentcore": func(time.Duration) (cloud, error) { return agentcoretest.Start(agentcoretest.Config{}) },
	"vercel":    func(d time.Duration) (cloud, error) { return verceltest.Start(verceltest.Config{StartDelay: d}) },
	"langsmith": func(d time.Duration) (cloud, error) { return langsmithtest.Start(langsmithtest.Config{StartDelay: d}) },
}

func on(ts *testscript.TestScript) *stage { return ts.Value("w").(*stage) }

func startModel(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: model FILE")
	}
	var steps []modeltest.Step
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &steps))
	s := on(ts)
	s.model = modeltest.Start()
	ts.Defer(s.model.Close)
	s.model.Script(steps...)
	ts.Setenv("OPENAI_API_KEY", "sk-story-0123456789abcdef")
	ts.Setenv("OPENAI_BASE_URL", s.model.OpenAI())
	ts.Setenv("TALKOPS_MODEL", "openai:gpt-5.1")
}

func startDaytona(ts *testscript.TestScript, neg bool, args []string) {
	startCloud(ts, neg, append([]string{"daytona"}, args...))
}

func startCloud(ts *testscript.TestScript, _ bool, args []string) {
	var delay time.Duration
	if len(args) > 1 {
		var err error
		delay, err = time.ParseDuration(args[1])
		ts.Check(err)
	}
	start := clouds[args[0]]
	if start == nil {
		ts.Fatalf("no emulated cloud %q", args[0])
	}
	srv, err := start(delay)
	ts.Check(err)
	ts.Defer(srv.Close)
	on(ts).cloud = srv
	d := builtin().Find(args[0]).Describe()
	for key, value := range srv.Settings() {
		s, known := d.Setting(key)
		if !known || len(s.Env) == 0 {
			ts.Fatalf("%s has no variable for its setting %s", args[0], key)
		}
		ts.Setenv(s.Env[0], value)
	}
}

func inject(ts *testscript.TestScript, _ bool, args []string) {
	f := daytonatest.Fault{Op: args[0]}
	ts.Check(json.Unmarshal([]byte(args[1]), &f))
	on(ts).cloud.Inject(f)
}

func behave(ts *testscript.TestScript, _ bool, args []string) {
	var b daytonatest.Behaviour
	ts.Check(json.Unmarshal([]byte(args[0]), &b))
	on(ts).cloud.(*daytonatest.Server).Behave(b)
}

func checkBoxes(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := len(on(ts).cloud.Boxes()); got != want {
		ts.Fatalf("%d machines run, want %d", got, want)
	}
}

func theBox(ts *testscript.TestScript, _ bool, _ []string) {
	ids := on(ts).cloud.Boxes()
	if len(ids) != 1 {
		ts.Fatalf("there are the machines %v, not one", ids)
	}
	ts.Setenv("BOX", ids[0])
}

func awaitBox(ts *testscript.TestScript, _ bool, _ []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if len(on(ts).cloud.Boxes()) > 0 {
			return
		}
	}
	ts.Fatalf("no machine was made")
}

func forget(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(os.RemoveAll(filepath.Join(ts.Getenv("TALKOPS_HOME"), "leases")))
}

func checkCalls(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	if got := len(on(ts).cloud.Requests(args[0])); got != want {
		ts.Fatalf("%s was asked for %d times, want %d", args[0], got, want)
	}
}

func checkAsked(ts *testscript.TestScript, neg bool, args []string) {
	found := false
	for _, r := range on(ts).model.Requests() {
		found = found || strings.Contains(fmt.Sprint(r.Body), args[0])
	}
	if found == neg {
		ts.Fatalf("the model was shown %q: %v", args[0], found)
	}
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	s, n := on(ts), 1
	if len(args) > 1 {
		var err error
		n, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if args[0] == "model" && s.model != nil && len(s.model.Requests()) >= n {
			return
		}
		if s.cloud != nil && len(s.cloud.Requests(args[0])) >= n {
			return
		}
	}
	ts.Fatalf("no request of %s came", args[0])
}

func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(signals[args[0]]))
	}
}

// A network can be taken away, so that nothing arrives or connections break.
type network interface {
	Unplug(refuses bool)
	Plug()
}

func unplug(ts *testscript.TestScript, _ bool, args []string) {
	on(ts).cloud.(network).Unplug(len(args) > 0)
}

// plug returns when the network is there again.
func plug(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		ts.Check(err)
		if *gap > 0 {
			d = *gap
		}
		time.Sleep(d)
	}
	on(ts).cloud.(network).Plug()
	heal(ts, false, nil)
}

func heal(ts *testscript.TestScript, _ bool, _ []string) {
	on(ts).cloud.(interface{ Heal() }).Heal()
}

func storm(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	asked := map[string]bool{}
	for _, r := range on(ts).cloud.Requests("") {
		if !asked[r.Op] {
			asked[r.Op] = true
			on(ts).cloud.Inject(daytonatest.Fault{Op: r.Op, Status: status, Times: -1})
		}
	}
}
