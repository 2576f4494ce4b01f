//go:build unix

package runloop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/runloop"
	"github.com/talkops-ai/talkops/providers/runloop/runlooptest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenSaysWhatItWants(t *testing.T) {
	s := runlooptest.New(t, runlooptest.Config{StartDelay: 150 * time.Millisecond})
	var created sandbox.Info
	var mu sync.Mutex
	var told []string
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Lifetime = 90 * time.Minute
		spec.Idle = time.Minute // gives way to the lifetime
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("execute")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
		spec.Progress = func(what string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what)
		}
	})
	info := sb.Info()
	if created.ID == "" || created.ID != info.ID || info.Provider != "runloop" {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if left := time.Until(info.Expires); !info.Expires.Equal(created.Expires) || left < 89*time.Minute || left > 90*time.Minute {
		t.Errorf("it expires in %v, want 90m", left)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	got := s.Sandbox(info.ID)
	if want := `map[keep_alive_time_seconds:5400]`; got["name"] != "mine" || fmt.Sprint(got["launch_parameters"]) != want {
		t.Errorf("got %v and %v, want %s", got["name"], got["launch_parameters"], want)
	}
	if metadata := got["metadata"].(map[string]string); metadata["app"] != "talkops" {
		t.Errorf("metadata: got %v", metadata)
	}
	if len(told) == 0 || told[0] != "devbox is provisioning" {
		t.Errorf("progress: got %q", told)
	}
}

func TestLifetimes(t *testing.T) {
	for _, row := range []struct {
		name           string
		lifetime, idle time.Duration
		want           string
		expires        time.Duration // 0 is unknown
	}{
		{"none given", 0, 0, "map[keep_alive_time_seconds:14400]", 4 * time.Hour},
		{"the lifetime is bounded", 7 * 24 * time.Hour, 0, "map[keep_alive_time_seconds:172800]", 48 * time.Hour},
		{"fractions are rounded up", 1500 * time.Millisecond, 0, "map[keep_alive_time_seconds:2]", 2 * time.Second},
		{"idle alone", 0, time.Minute, "map[lifecycle:map[after_idle:map[idle_time_seconds:60 on_idle:shutdown]]]", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := runlooptest.New(t)
			sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime, spec.Idle = row.lifetime, row.idle })
			if got := fmt.Sprint(s.Sandbox(sb.Info().ID)["launch_parameters"]); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			expires := sb.Info().Expires
			if left := time.Until(expires); expires.IsZero() != (row.expires == 0) || row.expires != 0 && (left > row.expires || left < row.expires-time.Minute) {
				t.Errorf("it expires %v, in %v", expires, left)
			}
		})
	}
}

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := runlooptest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := runlooptest.New(t)
	settings := s.Settings()
	delete(settings, "api_key")
	_, err := runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests without a key", n)
	}

	settings["api_key"] = "wrong-key-123"
	_, err = runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "wrong-key-123") {
		t.Errorf("the key is shown: %v", err)
	}

	settings["base_url"] = "http://example.com"
	_, err = runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave runlooptest.Behaviour
		fault  runlooptest.Fault
		code   sandbox.Code
	}{
		{"failure", runlooptest.Behaviour{EndIn: "failure"}, runlooptest.Fault{}, sandbox.CodeUnavailable},
		{"suspended while starting", runlooptest.Behaviour{EndIn: "suspended"}, runlooptest.Fault{}, sandbox.CodeUnavailable},
		{"shut down while starting", runlooptest.Behaviour{EndIn: "shutdown"}, runlooptest.Fault{}, sandbox.CodeUnavailable},
		{"never ready", runlooptest.Behaviour{NeverReady: true}, runlooptest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", runlooptest.Behaviour{}, runlooptest.Fault{Op: "create", Hold: true}, sandbox.CodeTimeout},
		{"shutdown refused at first", runlooptest.Behaviour{EndIn: "failure", BusyShutdowns: 2}, runlooptest.Fault{}, sandbox.CodeUnavailable},
		{"quota", runlooptest.Behaviour{}, runlooptest.Fault{Op: "create", Status: 429, Body: `{"message":"Devbox quota exceeded"}`}, sandbox.CodeQuota},
		{"commands are forbidden", runlooptest.Behaviour{}, runlooptest.Fault{Op: "execute", Status: 403}, sandbox.CodePermissionDenied},
		{"no status", runlooptest.Behaviour{NoExitStatus: true}, runlooptest.Fault{}, sandbox.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := runloop.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := runlooptest.New(t, runlooptest.Config{StartDelay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := runloop.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		for _, times := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d answers lost, request ids forgotten %v", times, forgets), func(t *testing.T) {
				t.Parallel()
				s := runlooptest.New(t)
				s.Behave(runlooptest.Behaviour{ForgetKeys: forgets})
				s.Inject(runlooptest.Fault{Op: "create", Late: true, Times: times})
				s.Inject(runlooptest.Fault{Op: "list", Status: 503, Times: 4 * 5}) // at first it is not found
				sb := open(t, s)
				if got := s.Boxes(); len(got) != 1 || got[0] != sb.Info().ID {
					t.Errorf("got devboxes %v, want %s alone", got, sb.Info().ID)
				}
			})
		}
	}
}

func TestAttach(t *testing.T) {
	for _, state := range []string{"running", "suspended", "suspending"} {
		t.Run(state, func(t *testing.T) {
			s := runlooptest.New(t, runlooptest.Config{StartDelay: 100 * time.Millisecond, StopDelay: 100 * time.Millisecond})
			first := open(t, s)
			id := first.Info().ID
			emulate.Run(t, first, "echo kept >f")
			before := s.Sandbox(id)
			switch state {
			case "suspended":
				s.SetState(id, state)
			case "suspending":
				s.Suspend(id)
			}
			sb := open(t, s, func(spec *sandbox.Spec) {
				spec.ID, spec.Lifetime = id, time.Minute
				spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
			})
			if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
				t.Errorf("got %q", out)
			}
			after := s.Sandbox(id)
			if got, want := fmt.Sprint(after["launch_parameters"]), fmt.Sprint(before["launch_parameters"]); got != want {
				t.Errorf("got %v, want %v as before", got, want)
			}
			if got := sb.Info().Expires; !got.Equal(first.Info().Expires) {
				t.Errorf("expires %v, want %v", got, first.Info().Expires)
			}
			if err := sb.Close(); err != nil || s.Running() != 1 {
				t.Errorf("close: %v, %d running", err, s.Running())
			}
		})
	}
}

func TestFailedAttachLeavesTheMachine(t *testing.T) {
	s := runlooptest.New(t)
	id := open(t, s).Info().ID
	attach := func(id string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := runloop.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), ID: id})
		return err
	}
	if err := attach("nothing"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	s.Inject(runlooptest.Fault{Op: "execute", Status: 403})
	emulate.WantCode(t, attach(id), sandbox.CodePermissionDenied)
	s.SetState(id, "queued")
	emulate.WantCode(t, attach(id), sandbox.CodeTimeout)
	s.SetState(id, "failure")
	emulate.WantCode(t, attach(id), sandbox.CodeGone)
	if got := s.Boxes(); len(got) != 1 || len(s.Requests("shutdown")) != 0 || len(s.Requests("create")) != 1 {
		t.Errorf("got devboxes %v and %d shutdowns", got, len(s.Requests("shutdown")))
	}
	if err := (runloop.Provider{}).Destroy(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: id}); err != nil {
		t.Fatal(err)
	}
	emulate.WantCode(t, attach(id), sandbox.CodeNotFound)
}

func TestListAndDestroy(t *testing.T) {
	s := runlooptest.New(t)
	mine := map[string]string{"app": "talkops", "run": "1"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func() []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), runloop.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: mine})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].State != "running" || got[0].Created.IsZero() || got[0].Expires.IsZero() {
		t.Errorf("got %+v", got)
	}
	s.SetState(sb.Info().ID, "suspended")
	if got := list(); len(got) != 1 || got[0].State != "suspended" {
		t.Errorf("suspended: got %+v", got)
	}
	s.Behave(runlooptest.Behaviour{BusyShutdowns: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	for range 2 {
		if err := (runloop.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(); len(got) != 0 || len(s.Requests("resume")) != 0 {
		t.Errorf("after destroy: got %+v", got)
	}
	spec.ID = "never-was"
	if err := (runloop.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
}

func TestListGoesThroughAllPages(t *testing.T) {
	s := runlooptest.New(t)
	for range 130 {
		s.Add(map[string]string{"app": "talkops"})
	}
	s.Add(nil)
	found, err := sandbox.List(t.Context(), runloop.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"app": "talkops"}})
	if err != nil || len(found) != 130 {
		t.Errorf("got %d, %v; want 130", len(found), err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := runlooptest.New(t)
	for _, op := range []string{"create", "execute", "execute-async", "upload"} {
		s.Inject(runlooptest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After-Ms": "600"}, Body: `{"message":"Rate limit exceeded"}`})
	}
	begin := time.Now()
	sb := open(t, s)
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("x")})
	if exit != 0 || err != nil {
		t.Errorf("got %d, %v", exit, err)
	}
	if took := time.Since(begin); took < 2400*time.Millisecond || took > time.Minute {
		t.Errorf("took %v, want the four waits asked for", took)
	}
}

func TestAttemptsOfOneCallHaveOneRequestID(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	s.Inject(runlooptest.Fault{Op: "execute-async", Late: true, Times: 2})
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; cat count; exit 5"), Stdout: &out})
	if exit != 5 || err != nil || out.String() != "x\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
	ids := map[string]bool{}
	sent := s.Requests("execute-async")
	for _, r := range sent {
		ids[r.Header.Get("X-Request-Id")] = true
	}
	if len(sent) != 3 || len(ids) != 1 || ids[""] {
		t.Errorf("%d attempts with the ids %v, want 3 with one", len(sent), ids)
	}
}

func TestCommandNeverRunsTwice(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault runlooptest.Fault
	}{
		{"answer lost", runlooptest.Fault{Op: "execute-async", Late: true}},
		{"answers lost", runlooptest.Fault{Op: "execute-async", Late: true, Times: -1}},
		{"refused", runlooptest.Fault{Op: "execute-async", Status: 500, Times: -1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			sb := open(t, s)
			s.Behave(runlooptest.Behaviour{ForgetKeys: true}) // the worst a service can do
			s.Inject(row.fault)
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 300"), Stdout: io.Discard})
			emulate.WantCode(t, err, sandbox.CodeUnavailable)
			s.Heal()
			if out, _, _ := emulate.Run(t, sb, "cat count 2>/dev/null"); exit != 0 || len(out) > 2 {
				t.Errorf("got %d, and the command ran %d times", exit, len(out)/2)
			}
		})
	}
}

func TestCommandIsFollowedOverBrokenConnections(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	for _, op := range []string{"stdout", "stderr", "execution-wait"} {
		s.Inject(runlooptest.Fault{Op: op, Late: true})
		s.Inject(runlooptest.Fault{Op: op, Status: 502})
		s.Inject(runlooptest.Fault{Op: op, Status: 503, Header: map[string]string{"X-Should-Retry": "false"}})
	}
	var out, errOut bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; echo e >&2; exit 5"), Stdout: &out, Stderr: &errOut})
	if exit != 5 || err != nil || out.String() != "x\n" || errOut.String() != "e\n" {
		t.Errorf("got %d, %v, %q, %q", exit, err, out.String(), errOut.String())
	}
}

func TestLongWaitsAreTakenUpAgain(t *testing.T) {
	s := runlooptest.New(t, runlooptest.Config{Hold: 50 * time.Millisecond, StartDelay: 300 * time.Millisecond})
	sb := open(t, s)
	if out, _, exit := emulate.Run(t, sb, "sleep 1; echo on"); out != "on\n" || exit != 0 {
		t.Errorf("got %q, %d", out, exit)
	}
	if len(s.Requests("wait")) < 2 || len(s.Requests("execution-wait")) < 2 {
		t.Errorf("%d and %d waits", len(s.Requests("wait")), len(s.Requests("execution-wait")))
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*runlooptest.Server, string)
	}{
		{"vanished", (*runlooptest.Server).Vanish},
		{"suspended", func(s *runlooptest.Server, id string) { s.SetState(id, "suspended") }},
		{"failed", func(s *runlooptest.Server, id string) { s.SetState(id, "failure") }},
		{"shut down", func(s *runlooptest.Server, id string) { s.SetState(id, "shutdown") }},
		{"executions lost", (*runlooptest.Server).LoseExecutions},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := runlooptest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; echo $$ >pid; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			if row.name == "executions lost" {
				pid, _, _ := emulate.Run(t, sb, "cat pid")
				emulate.Ended(t, pid)
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

func TestLifetimeEndsTheMachine(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	s := runlooptest.New(t, runlooptest.Config{Now: clock})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = time.Hour })
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	if err == nil || !strings.Contains(err.Error(), "keep alive timeout") {
		t.Errorf("got %v, want Runloop's reason", err)
	}
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestShellOfTheCommandMayDie(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`echo $$ >pid; kill -9 "$PPID"; sleep 300`), Stdout: io.Discard})
	emulate.WantCode(t, err, sandbox.CodeGone)
	pid, _, _ := emulate.Run(t, sb, "cat pid")
	emulate.Ended(t, pid)
}

func TestLostOutputIsAnError(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	var out bytes.Buffer
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`rm "${TMPDIR:-/tmp}"/.talkops-*/*.o; echo on`), Stdout: &out})
	emulate.WantCode(t, err, sandbox.CodeInternal)
}

func TestStatusOfAScriptMustBeKnown(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	s.Behave(runlooptest.Behaviour{NoExitStatus: true})
	emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeInternal)
}

func TestExpiredKey(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	s.Behave(runlooptest.Behaviour{ExpiredKey: true})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
}

func TestViewsOfTwoFieldsSuffice(t *testing.T) {
	s := runlooptest.New(t)
	s.Behave(runlooptest.Behaviour{TwoFields: true})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = time.Hour })
	if left := time.Until(sb.Info().Expires); left < 59*time.Minute || left > time.Hour {
		t.Errorf("expires in %v", left)
	}
	other := open(t, s, func(spec *sandbox.Spec) { spec.ID = sb.Info().ID })
	if got := other.Info().Expires; !got.IsZero() {
		t.Errorf("attached: expires %v, want unknown", got)
	}
}

func TestUnpackAndPack(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	emulate.Run(t, sb, "mkdir -p a/b; echo x >a/b/f; ln -s f a/b/l; chmod 700 a/b/f")
	var archive bytes.Buffer
	if err := sandbox.Pack(t.Context(), sb, sb.Info().Dir, []string{"a"}, &archive); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Unpack(t.Context(), sb, sb.Info().Dir+"/copy", &archive); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := emulate.Run(t, sb, "cd copy/a/b; cat f; readlink l; stat -c %a f"); out != "x\nf\n700\n" {
		t.Errorf("got %q", out)
	}
}

func TestSnapshot(t *testing.T) {
	s := runlooptest.New(t, runlooptest.Config{StopDelay: 50 * time.Millisecond})
	sb := open(t, s)
	for _, text := range []string{"first", "second"} {
		emulate.Run(t, sb, "echo "+text+" >f")
		if err := sandbox.Snapshot(t.Context(), sb, "base"); err != nil {
			t.Fatal(err)
		}
	}
	next := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "base" })
	if out, _, _ := emulate.Run(t, next, "cat f"); out != "second\n" {
		t.Errorf("got %q, want what the newest snapshot holds", out)
	}
	_, err := runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: "none"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
}

func TestBlueprints(t *testing.T) {
	s := runlooptest.New(t, runlooptest.Config{StartDelay: 20 * time.Millisecond})
	image := func(name, image string) func(*sandbox.Spec) {
		return func(spec *sandbox.Spec) { spec.Snapshot, spec.Image = name, image }
	}
	asked := func(sb sandbox.Sandbox) any { return s.Sandbox(sb.Info().ID)["blueprint_id"] }
	if got := asked(open(t, s)); got != nil {
		t.Errorf("with nothing asked for: got %v", got)
	}
	first := asked(open(t, s, image("", "debian:12")))
	if again := asked(open(t, s, image("", "debian:12"))); first == nil || again != first || len(s.Requests("blueprint-create")) != 1 {
		t.Errorf("an image is built once: got %v and %v", first, again)
	}
	if other := asked(open(t, s, image("", "debian:13"))); other == first {
		t.Error("another image is the same blueprint")
	}
	named := asked(open(t, s, image("base", "debian:12")))
	for what, change := range map[string]func(*sandbox.Spec){
		"by name":         image("base", ""),
		"by id":           image(fmt.Sprint(named), ""),
		"by setting":      func(spec *sandbox.Spec) { spec.Settings["blueprint_name"] = "base" },
		"id before names": func(spec *sandbox.Spec) { spec.Settings["blueprint_id"], spec.Snapshot = fmt.Sprint(named), "x" },
	} {
		if got := asked(open(t, s, change)); got != named {
			t.Errorf("%s: got %v, want %v", what, got, named)
		}
	}

	before := len(s.Boxes())
	s.Behave(runlooptest.Behaviour{BuildFails: true})
	_, err := runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Image: "example.com/broken"})
	emulate.WantCode(t, err, sandbox.CodeUnavailable)
	if err == nil || !strings.Contains(err.Error(), "build failed") && !strings.Contains(err.Error(), "build_failed") || !strings.Contains(err.Error(), "the build is failed") {
		t.Errorf("got %v, want the reason and the log", err)
	}
	if len(s.Boxes()) != before {
		t.Error("a devbox was made")
	}
	_, err = runloop.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Image: "no image"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestAnswerThatIsNoFile(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(runlooptest.Fault{Op: "download", Status: 200, Body: `{"message":"an error with the wrong status"}`})
	var got bytes.Buffer
	emulate.WantCode(t, sb.ReadFile(t.Context(), name, &got), sandbox.CodeInternal)
	if got.Len() != 0 {
		t.Errorf("got %q as content", got.String())
	}
}

func TestLargeFileIsStreamed(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	const size = 100 << 20
	name := sb.Info().Dir + "/large"
	if err := sb.WriteFile(t.Context(), name, io.LimitReader(zeros{}, size), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(runlooptest.Fault{Op: "download", Cut: 60 << 20})
	var n emulate.Counter
	if err := sb.ReadFile(t.Context(), name, &n); err != nil || n != size {
		t.Errorf("got %d bytes, %v; want %d", n, err, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A command may delete what it finds in the temporary directory.
func TestDeletedPrivateDirectory(t *testing.T) {
	s := runlooptest.New(t)
	sb := open(t, s)
	file := sb.Info().Dir + "/f"
	remove := func() {
		t.Helper()
		if exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`rm -rf "${TMPDIR:?}"/.talkops-*; echo out`), Stdout: io.Discard}); err == nil {
			t.Errorf("a command whose output is lost ended with %d and no error", exit)
		}
	}
	remove()
	if err := sb.WriteFile(t.Context(), file, strings.NewReader("x"), 0o644); err != nil {
		t.Errorf("writing afterwards: %v", err)
	}
	remove()
	var out bytes.Buffer
	if _, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("cat f -"), Stdin: strings.NewReader("y"), Stdout: &out}); err != nil || out.String() != "xy" {
		t.Errorf("afterwards: %q, %v", out.String(), err)
	}
}
