//go:build unix

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/runtime/model/modeltest"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/workspace"
)

var (
	chaosLives = flag.Int("chaos", 0, "so many lives are disturbed; 0: two of every cloud")
	chaosSeed  = flag.Uint64("chaos-seed", 0, "what happens in them; 0: chosen by the clock")
	chaosFor   = flag.Duration("chaos-for", 3*time.Minute, "no life begins after this")
)

// TestChaos lets sandboxes live their whole life while talkops is killed and their
// cloud fails at any moment. Whatever happens: the project stays as it is, what is on
// record can be read, what calls have finished can be had, and prune leaves nothing.
func TestChaos(t *testing.T) {
	slow(t)
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos-seed %d", seed)
	names := slices.Sorted(maps.Keys(clouds))
	n := *chaosLives
	if n == 0 {
		n = 2 * len(names)
	}
	calm := map[string]*chaosLife{}
	for _, name := range names {
		l := newLife(t, name, rand.New(rand.NewPCG(seed, 0)))
		l.live(nil)
		if t.Failed() {
			return
		}
		calm[name] = l
	}
	until := time.Now().Add(*chaosFor)
	var wg sync.WaitGroup
	gate := make(chan struct{}, 4)
	began := 0
	for i := range n {
		gate <- struct{}{}
		if time.Now().After(until) || t.Failed() {
			break
		}
		began++
		wg.Go(func() {
			defer func() { <-gate }()
			name := names[i%len(names)]
			t.Run(fmt.Sprintf("%d-%s", i+1, name), func(t *testing.T) {
				newLife(t, name, rand.New(rand.NewPCG(seed, uint64(i+1)))).live(calm[name])
			})
		})
	}
	wg.Wait()
	t.Logf("%d lives", began)
}

// A chaosLife is one run of talkops and what comes after it.
type chaosLife struct {
	t       *testing.T
	rand    *rand.Rand
	name    string
	cloud   cloud
	model   *modeltest.Server
	home    string
	project string
	env     []string
	story   []string // what was done to it, and what talkops said

	took time.Duration // of a calm life
	ops  []string      // that it asked for
}

const chaosCalls = 4

func newLife(t *testing.T, name string, r *rand.Rand) *chaosLife {
	dir := t.TempDir()
	l := &chaosLife{t: t, rand: r, name: name, home: filepath.Join(dir, "home", ".talkops"), project: filepath.Join(dir, "shop")}
	for file, text := range map[string]string{"app.txt": "app\n", "gone.txt": "gone\n", "lib/a.txt": "a\n", ".talkops/keep": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(l.project, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.project, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if l.cloud, err = clouds[name](50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	l.model = modeltest.Start()
	for i := range chaosCalls {
		// The mark is not in the command itself.
		input, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("echo work %d > f%d.txt; rm -f gone.txt; sleep 0.1; echo do''ne-%d", i, i, i)})
		l.model.Script(modeltest.Step{Calls: []modeltest.Call{{Name: "execute", Input: string(input)}}})
	}
	l.model.Forever(modeltest.Step{Text: "Done."})
	l.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(l.home), "TALKOPS_HOME=" + l.home, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"OPENAI_API_KEY=sk-story-0123456789abcdef", "OPENAI_BASE_URL=" + l.model.OpenAI(), "TALKOPS_MODEL=openai:gpt-5.1",
	}
	d := builtin().Find(name).Describe()
	for key, value := range l.cloud.Settings() {
		s, _ := d.Setting(key)
		l.env = append(l.env, s.Env[0]+"="+value)
	}
	return l
}

func (l *chaosLife) say(format string, args ...any) {
	l.story = append(l.story, fmt.Sprintf(format, args...))
}

func (l *chaosLife) fail(format string, args ...any) {
	l.t.Errorf("%s: %s\n%s", l.name, fmt.Sprintf(format, args...), strings.Join(l.story, "\n"))
}

// begin starts talkops. The function it returns waits and notes what it said.
func (l *chaosLife) begin(args ...string) (*exec.Cmd, func() error) {
	cmd := exec.Command("talkops", args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.project, l.env, &out, &out
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	return cmd, func() error {
		err := cmd.Wait()
		l.say("$ talkops %s\n%s(%v)", strings.Join(args, " "), out.String(), err)
		return err
	}
}

func (l *chaosLife) run(args ...string) error {
	_, wait := l.begin(args...)
	return wait()
}

// talkops runs talkops and returns its status and what it said.
func (l *chaosLife) talkops(args ...string) (status int, said string) {
	cmd := exec.Command("talkops", args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = l.project, l.env, &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		l.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// live is one life; calm is an undisturbed one, or nil if this is to be that.
func (l *chaosLife) live(calm *chaosLife) {
	defer l.model.Close()
	defer l.cloud.Close()
	before := l.tree()
	began := time.Now()
	cmd, wait := l.begin("--sandbox", l.name, "--yolo", "-p", "Do it")
	stop := l.disturb(cmd, calm)
	err := wait()
	stop()
	l.took = time.Since(began)
	if calm == nil {
		for _, r := range l.cloud.Requests("") {
			if r.Op != "" && !slices.Contains(l.ops, r.Op) {
				l.ops = append(l.ops, r.Op)
			}
		}
		if err != nil || len(l.cloud.Boxes()) != 0 {
			l.fail("undisturbed, it ended with %v and left %v", err, l.cloud.Boxes())
		}
	}
	done := l.done()
	l.say("done: %v", done)
	l.check()
	if calm != nil && l.rand.IntN(4) == 0 {
		l.killed([][]string{{"sandbox", "prune"}, {"sandbox", "rescue", l.aRun()}, {"sandbox", "list", "--all"}}[l.rand.IntN(3)])
		l.check()
	}
	runs := l.runs()
	for _, run := range runs {
		if err := l.run("sandbox", "rescue", run); err != nil {
			l.fail("rescue %s: %v", run, err)
		}
	}
	if err := l.run("sandbox", "prune"); err != nil {
		l.fail("prune: %v", err)
	}
	if boxes := l.cloud.Boxes(); len(boxes) != 0 {
		l.fail("prune left the machines %v", boxes)
	}
	if leases, err := (session.Leases{Dir: filepath.Join(l.home, "leases")}).List(); err != nil || len(leases) != 0 {
		l.fail("prune left on record %+v (%v)", leases, err)
	}
	if after := l.tree(); after != before {
		l.fail("the project changed:\n%s\n---\n%s", before, after)
	}
	l.check()
	for _, run := range runs {
		if err := l.run("sandbox", "apply", run); err != nil {
			l.fail("apply %s: %v", run, err)
		}
	}
	for _, i := range done {
		want := fmt.Sprintf("work %d\n", i)
		if got, err := os.ReadFile(filepath.Join(l.project, fmt.Sprintf("f%d.txt", i))); string(got) != want {
			l.fail("what call %d did is lost: %q, %v", i, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(l.project, "gone.txt")); len(done) > 0 && !errors.Is(err, fs.ErrNotExist) {
		l.fail("a file that was deleted is there: %v", err)
	}
}

// disturb does something to a run, and ends it if it goes on for too long. What it
// returns waits for that and makes the cloud whole again.
func (l *chaosLife) disturb(cmd *exec.Cmd, calm *chaosLife) (stop func()) {
	if calm == nil {
		return func() {}
	}
	within := func(d time.Duration) time.Duration { return time.Duration(l.rand.Int64N(int64(d) + 1)) }
	kill, term := 3*calm.took, time.Duration(0)
	var cut, whole time.Duration
	refuses := false
	switch n := l.rand.IntN(10); {
	case n < 4:
		kill = within(calm.took)
	case n < 6:
		f := daytonatest.Fault{Op: calm.ops[l.rand.IntN(len(calm.ops))], Skip: l.rand.IntN(3), Times: 1 + l.rand.IntN(4)}
		switch l.rand.IntN(4) {
		case 0:
			f.Status = []int{500, 502, 503, 429}[l.rand.IntN(4)]
		case 1:
			f.Hang = true
		case 2:
			f.Late = true
		case 3:
			f.Cut = 1 + l.rand.Int64N(40)
		}
		l.say("fault %+v", f)
		l.cloud.Inject(f)
		if l.rand.IntN(2) == 0 {
			kill = within(2 * calm.took)
		}
	case n < 8:
		cut, refuses = within(calm.took), l.rand.IntN(2) == 0
		whole = cut + within(calm.took)
		l.say("the network is gone after %v, until %v, refusing: %v", cut, whole, refuses)
	default:
		term = within(calm.took)
		kill = term + within(calm.took)
		l.say("TERM after %v", term)
	}
	l.say("KILL after %v", kill)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	after := func(d time.Duration, do func()) {
		wg.Go(func() {
			select {
			case <-time.After(d):
				do()
			case <-ctx.Done():
			}
		})
	}
	after(kill, func() { cmd.Process.Kill() })
	if term > 0 {
		after(term, func() { cmd.Process.Signal(syscall.SIGTERM) })
	}
	net, _ := l.cloud.(network)
	if cut > 0 && net != nil {
		after(cut, func() { net.Unplug(refuses) })
		after(whole, net.Plug)
	}
	return func() {
		cancel()
		wg.Wait()
		l.cloud.(interface{ Heal() }).Heal()
		if net != nil {
			net.Plug()
		}
	}
}

// killed runs talkops and kills it soon.
func (l *chaosLife) killed(args []string) {
	cmd, wait := l.begin(args...)
	d := time.Duration(l.rand.Int64N(int64(400 * time.Millisecond)))
	timer := time.AfterFunc(d, func() { cmd.Process.Kill() })
	wait()
	timer.Stop()
}

// done are the calls whose result the model was told.
func (l *chaosLife) done() []int {
	var list []int
	for i := range chaosCalls {
		for _, r := range l.model.Requests() {
			if strings.Contains(r.Body, fmt.Sprintf("done-%d", i)) {
				list = append(list, i)
				break
			}
		}
	}
	return list
}

// runs are those whose work is kept.
func (l *chaosLife) runs() []string {
	var list []string
	for _, h := range session.Homes(filepath.Join(l.home, "saved")) {
		list = append(list, h.Run.ID)
	}
	return list
}

func (l *chaosLife) aRun() string {
	for _, run := range l.runs() {
		return run
	}
	return "none"
}

// check reads everything that is on record.
func (l *chaosLife) check() {
	filepath.WalkDir(l.home, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		switch {
		case err != nil:
		case filepath.Ext(name) == ".json" && !json.Valid(data):
			err = errors.New("it is no JSON")
		case d.Name() == "changes.json":
			var h *workspace.Home
			if h, err = workspace.OpenHome(filepath.Dir(name)); err == nil {
				err = h.Resume()
			}
			if err == nil && len(h.Changes) > 0 {
				_, err = h.Pull(l.t.Context(), filepath.Join(l.t.TempDir(), "pulled"), h.Changes)
			}
		}
		if err != nil {
			l.fail("%s: %v", name, err)
		}
		return nil
	})
	if _, err := (session.Leases{Dir: filepath.Join(l.home, "leases")}).List(); err != nil {
		l.fail("the ledger: %v", err)
	}
}

// tree is the project, as text.
func (l *chaosLife) tree() string {
	var b strings.Builder
	filepath.WalkDir(l.project, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintln(&b, err)
			return nil
		}
		info, _ := d.Info()
		fmt.Fprint(&b, strings.TrimPrefix(name, l.project), " ", info.Mode())
		if d.Type().IsRegular() {
			data, _ := os.ReadFile(name)
			fmt.Fprintf(&b, " %q %v", data, info.ModTime())
		}
		fmt.Fprintln(&b)
		return nil
	})
	return b.String()
}
