//go:build unix

package daytona_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/daytona"
	"github.com/talkops-ai/talkops/providers/daytona/daytonatest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenSaysWhatItWants(t *testing.T) {
	s := daytonatest.New(t, daytonatest.Config{StartDelay: 150 * time.Millisecond})
	var created sandbox.Info
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Lifetime = 90 * time.Second
		spec.Image = "debian:12"
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("execute")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
	})
	info := sb.Info()
	if created.ID == "" || created.ID != info.ID || info.Provider != "daytona" || info.Expires.IsZero() {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	got := s.Sandbox(info.ID)
	for key, want := range map[string]any{"ttlMinutes": 2.0, "autoStopInterval": 120.0, "autoDeleteInterval": 60.0, "name": "mine"} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	if build, _ := got["buildInfo"].(map[string]any); build["dockerfileContent"] != "FROM debian:12\n" {
		t.Errorf("image: got %v", got["buildInfo"])
	}
}

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := daytonatest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := daytonatest.New(t)
	settings := s.Settings()
	delete(settings, "api_key")
	_, err := daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests without a key", n)
	}

	settings["api_key"] = "wrong-key-123"
	_, err = daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "wrong-key-123") {
		t.Errorf("the key is shown: %v", err)
	}

	settings["api_url"] = "http://example.com/api"
	_, err = daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave daytonatest.Behaviour
		fault  daytonatest.Fault
		code   sandbox.Code
	}{
		{"build failed", daytonatest.Behaviour{EndIn: "build_failed"}, daytonatest.Fault{}, sandbox.CodeUnavailable},
		{"error", daytonatest.Behaviour{EndIn: "error"}, daytonatest.Fault{}, sandbox.CodeUnavailable},
		{"stopped while starting", daytonatest.Behaviour{EndIn: "stopped"}, daytonatest.Fault{}, sandbox.CodeUnavailable},
		{"destroyed while starting", daytonatest.Behaviour{EndIn: "destroyed"}, daytonatest.Fault{}, sandbox.CodeNotFound},
		{"never ready", daytonatest.Behaviour{NeverReady: true}, daytonatest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", daytonatest.Behaviour{}, daytonatest.Fault{Op: "create", Hold: true}, sandbox.CodeTimeout},
		{"deletion refused at first", daytonatest.Behaviour{EndIn: "error", BusyDeletes: 2}, daytonatest.Fault{}, sandbox.CodeUnavailable},
		{"quota", daytonatest.Behaviour{}, daytonatest.Fault{Op: "create", Status: 400, Body: `{"message":"Total CPU limit exceeded. Maximum allowed: 10."}`}, sandbox.CodeQuota},
		{"working directory unknown", daytonatest.Behaviour{}, daytonatest.Fault{Op: "work-dir", Status: 403}, sandbox.CodePermissionDenied},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := daytonatest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := daytona.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := daytonatest.New(t, daytonatest.Config{StartDelay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := daytona.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	s := daytonatest.New(t)
	s.Inject(daytonatest.Fault{Op: "create", Late: true})
	open(t, s)
	if got := s.Boxes(); len(got) != 1 {
		t.Errorf("got sandboxes %v, want one", got)
	}
}

func TestTakenNameIsNotAdopted(t *testing.T) {
	s := daytonatest.New(t)
	open(t, s, func(spec *sandbox.Spec) { spec.Name = "box" })
	_, err := daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Name: "box"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if got := s.Boxes(); len(got) != 1 {
		t.Errorf("got sandboxes %v, want the first alone", got)
	}
}

func TestAttach(t *testing.T) {
	s := daytonatest.New(t, daytonatest.Config{StartDelay: 100 * time.Millisecond})
	first := open(t, s)
	id := first.Info().ID
	emulate.Run(t, first, "echo kept >f")
	before := s.Sandbox(id)
	s.SetState(id, "stopped")
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.ID, spec.Lifetime = id, time.Minute
		spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
	})
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	for _, key := range []string{"ttlMinutes", "autoStopInterval", "autoDeleteInterval"} {
		if got := s.Sandbox(id)[key]; got != before[key] {
			t.Errorf("%s: got %v, want %v as before", key, got, before[key])
		}
	}
	if err := sb.Close(); err != nil || s.Running() != 1 {
		t.Errorf("close: %v, %d running", err, s.Running())
	}
	_, err := daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: "nothing"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	if !errors.Is(err, sandbox.ErrNotFound) || len(s.Boxes()) != 1 {
		t.Errorf("got %v and %v", err, s.Boxes())
	}
}

func TestListAndDestroy(t *testing.T) {
	s := daytonatest.New(t, daytonatest.Config{StopDelay: 50 * time.Millisecond})
	mine := map[string]string{"app": "talkops", "run": "1"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func() []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), daytona.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: mine})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].State != "started" || got[0].Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	s.Behave(daytonatest.Behaviour{BusyDeletes: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	for range 2 {
		if err := (daytona.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(); len(got) != 0 {
		t.Errorf("after destroy: got %+v", got)
	}
	spec.ID = "never-was"
	if err := (daytona.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := daytonatest.New(t)
	for _, op := range []string{"create", "get", "work-dir"} {
		s.Inject(daytonatest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: `{"message":"Rate limit exceeded"}`})
	}
	begin := time.Now()
	open(t, s)
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("took %v, want the three seconds asked for", took)
	}
}

func TestRefusedCommandIsSentOnce(t *testing.T) {
	s := daytonatest.New(t)
	sb := open(t, s)
	s.Inject(daytonatest.Fault{Op: "session-exec", Status: 500, Times: -1})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count")})
	emulate.WantCode(t, err, sandbox.CodeUnavailable)
	if n := len(s.Requests("session-exec")); n != 1 {
		t.Errorf("the command was sent %d times", n)
	}
}

func TestCommandIsFollowedAfterALostAnswer(t *testing.T) {
	s := daytonatest.New(t)
	sb := open(t, s)
	s.Inject(daytonatest.Fault{Op: "session-exec", Late: true})
	s.Inject(daytonatest.Fault{Op: "command", Late: true, Times: 3})
	s.Inject(daytonatest.Fault{Op: "command", Status: 502, Times: 2})
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; exit 5"), Stdout: &out})
	if exit != 5 || err != nil || out.String() != "x\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*daytonatest.Server, string)
	}{
		{"vanished", (*daytonatest.Server).Vanish},
		{"stopped", func(s *daytonatest.Server, id string) { s.SetState(id, "stopped") }},
		{"failed", func(s *daytonatest.Server, id string) { s.SetState(id, "error") }},
		{"session lost", (*daytonatest.Server).LoseSessions},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := daytonatest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			if row.name == "session lost" {
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

func TestUnknownStatusIsAnError(t *testing.T) {
	s := daytonatest.New(t)
	sb := open(t, s)
	s.Behave(daytonatest.Behaviour{NoExitStatus: true})
	emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeInternal)
}

func TestExpiredKey(t *testing.T) {
	s := daytonatest.New(t)
	sb := open(t, s)
	s.Behave(daytonatest.Behaviour{ExpiredKey: true})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
}

func TestUnpackAndPack(t *testing.T) {
	s := daytonatest.New(t)
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
	s := daytonatest.New(t, daytonatest.Config{StopDelay: 50 * time.Millisecond})
	sb := open(t, s)
	emulate.Run(t, sb, "echo kept >f")
	if err := sandbox.Snapshot(t.Context(), sb, "base"); err != nil {
		t.Fatal(err)
	}
	emulate.WantCode(t, sandbox.Snapshot(t.Context(), sb, "base"), sandbox.CodeInvalidArgument)
	next := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "base" })
	if out, _, _ := emulate.Run(t, next, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	_, err := daytona.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: "none"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
}

func TestAnswerThatIsNoFile(t *testing.T) {
	s := daytonatest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(daytonatest.Fault{Op: "download", Status: 200, Body: `{"message":"an error with the wrong status"}`})
	var got bytes.Buffer
	emulate.WantCode(t, sb.ReadFile(t.Context(), name, &got), sandbox.CodeInternal)
	if got.Len() != 0 {
		t.Errorf("got %q as content", got.String())
	}
}
