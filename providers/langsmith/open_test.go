//go:build unix

package langsmith_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/langsmith"
	"github.com/talkops-ai/talkops/providers/langsmith/langsmithtest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenSaysWhatItWants(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{StartDelay: 150 * time.Millisecond, BuildDelay: 300 * time.Millisecond})
	var created sandbox.Info
	var progress []string
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Idle = 90 * time.Second
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("execute")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
		spec.Progress = func(text string) { progress = append(progress, text) }
	})
	info := sb.Info()
	if created.ID != "mine" || created.ID != info.ID || info.Provider != "langsmith" || !info.Expires.IsZero() {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	got := s.Sandbox(info.ID)
	for key, want := range map[string]any{"idle_ttl_seconds": 120.0, "delete_after_stop_seconds": 3600.0, "name": "mine"} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	if got := s.Snapshots(); !slices.Equal(got, []string{"talkops-aws-agent ready"}) {
		t.Errorf("got snapshots %q, want the default one", got)
	}
	if build := s.Requests("build"); len(build) != 1 || !strings.Contains(build[0].Body, `"python:3.12-slim"`) {
		t.Errorf("builds: %+v", build)
	}
	if want := "building snapshot talkops-aws-agent from python:3.12-slim"; len(progress) == 0 || progress[0] != want {
		t.Errorf("got progress %q, want %q first", progress, want)
	}
}

func TestSnapshotToStartFrom(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{BuildDelay: 700 * time.Millisecond})
	named := func(spec *sandbox.Spec) { spec.Snapshot, spec.Image = "acme/tools", "debian:12" }
	spec := sandbox.Spec{Settings: s.Settings()}
	named(&spec)

	// Cancelled while it is built: the build goes on and is not begun again.
	ctx, cancel := context.WithCancel(t.Context())
	spec.Progress = func(string) { cancel() }
	_, err := langsmith.Provider{}.Open(ctx, spec)
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if got := s.Boxes(); len(got) != 0 {
		t.Errorf("left running: %v", got)
	}
	first := open(t, s, named)
	second := open(t, s, named)
	if got := s.Snapshots(); !slices.Equal(got, []string{"acme/tools ready"}) {
		t.Errorf("got snapshots %q, want one", got)
	}
	if build := s.Requests("build"); len(build) != 1 || !strings.Contains(build[0].Body, `"debian:12"`) {
		t.Errorf("builds: %+v", build)
	}
	a, b := s.Sandbox(first.Info().ID)["snapshot_id"], s.Sandbox(second.Info().ID)["snapshot_id"]
	if a == "" || a != b {
		t.Errorf("started from %v and %v", a, b)
	}
	// By its id, too.
	open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = a.(string) })
	if n := len(s.Requests("build")); n != 1 {
		t.Errorf("%d builds", n)
	}
}

func TestSnapshotOnALaterPageIsFound(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{BuildDelay: time.Second})
	var body []string
	for n := range 120 {
		body = append(body, fmt.Sprintf("acme/tools-%d", n))
	}
	for _, name := range append(body, "acme/tools") {
		build(t, s, name)
	}
	open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "acme/tools" })
	if n := len(s.Requests("build")); n != 121 {
		t.Errorf("%d builds, want none more", n)
	}
}

func build(t *testing.T, s *langsmithtest.Server, name string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/v2/sandboxes/snapshots",
		strings.NewReader(fmt.Sprintf(`{"name":%q,"docker_image":"debian:12","fs_capacity_bytes":1}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", s.Key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 201 {
		t.Fatalf("build: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestFailedSnapshotIsNotRebuilt(t *testing.T) {
	s := langsmithtest.New(t)
	s.Behave(langsmithtest.Behaviour{BuildFails: true})
	for range 2 {
		_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings()})
		emulate.WantCode(t, err, sandbox.CodeUnavailable)
		if !strings.Contains(err.Error(), "the emulator was told so") {
			t.Errorf("the reason is missing: %v", err)
		}
	}
	if n := len(s.Requests("build")); n != 1 {
		t.Errorf("%d builds", n)
	}
}

func TestLostBuildIsFoundAgain(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{BuildDelay: 300 * time.Millisecond})
	s.Inject(langsmithtest.Fault{Op: "build", Late: true})
	open(t, s)
	if got := s.Snapshots(); len(got) != 1 {
		t.Errorf("got snapshots %q, want one", got)
	}
}

func TestEndpoints(t *testing.T) {
	s := langsmithtest.New(t)
	for _, suffix := range []string{"", "/", "/api", "/api/v1", "/v2/sandboxes", "/api/v2/sandboxes/"} {
		settings := s.Settings()
		settings["endpoint"] += suffix
		if _, err := sandbox.List(t.Context(), langsmith.Provider{}, sandbox.Spec{Settings: settings}); err != nil {
			t.Errorf("endpoint %s: %v", suffix, err)
		}
	}
}

func TestKeyIsNotSentToAnAddressThatIsNotTrusted(t *testing.T) {
	for _, address := range []string{"http://example.com/dp", "ftp://example.com", "https://user@example.com/dp", "/dp"} {
		s := langsmithtest.New(t)
		s.Behave(langsmithtest.Behaviour{Dataplane: address})
		_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings()})
		emulate.WantCode(t, err, sandbox.CodeInternal)
		if left := s.Boxes(); len(left) != 0 {
			t.Errorf("left running: %v", left)
		}
	}
}

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := langsmithtest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := langsmithtest.New(t)
	settings := s.Settings()
	delete(settings, "api_key")
	_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests without a key", n)
	}

	settings["api_key"] = "wrong-key-123"
	_, err = langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "wrong-key-123") {
		t.Errorf("the key is shown: %v", err)
	}

	settings["endpoint"] = "http://example.com/api"
	_, err = langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave langsmithtest.Behaviour
		fault  langsmithtest.Fault
		code   sandbox.Code
	}{
		{"failed", langsmithtest.Behaviour{EndIn: "failed"}, langsmithtest.Fault{}, sandbox.CodeUnavailable},
		{"stopped while starting", langsmithtest.Behaviour{EndIn: "stopped"}, langsmithtest.Fault{}, sandbox.CodeUnavailable},
		{"deleted while starting", langsmithtest.Behaviour{EndIn: "deleting"}, langsmithtest.Fault{}, sandbox.CodeUnavailable},
		{"never ready", langsmithtest.Behaviour{NeverReady: true}, langsmithtest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", langsmithtest.Behaviour{}, langsmithtest.Fault{Op: "create", Hold: true}, sandbox.CodeTimeout},
		{"deletion refused at first", langsmithtest.Behaviour{EndIn: "failed", BusyDeletes: 2}, langsmithtest.Fault{}, sandbox.CodeUnavailable},
		{"quota", langsmithtest.Behaviour{}, langsmithtest.Fault{Op: "create", Status: 429, Body: `{"detail":{"error":"QuotaExceeded","message":"Sandbox count limit of 5 reached"}}`}, sandbox.CodeQuota},
		{"invalid", langsmithtest.Behaviour{}, langsmithtest.Fault{Op: "create", Status: 422, Body: `{"detail":[{"loc":["body","vcpus"],"msg":"too many","type":"value_error"}]}`}, sandbox.CodeInvalidArgument},
		{"image cannot be pulled", langsmithtest.Behaviour{}, langsmithtest.Fault{Op: "create", Status: 422, Body: `{"detail":{"error":"ImagePull","message":"no such image"}}`}, sandbox.CodeUnavailable},
		{"dataplane refuses", langsmithtest.Behaviour{}, langsmithtest.Fault{Op: "execute", Status: 403}, sandbox.CodePermissionDenied},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := langsmithtest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := langsmith.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{StartDelay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := langsmith.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	s := langsmithtest.New(t)
	s.Inject(langsmithtest.Fault{Op: "create", Late: true})
	open(t, s)
	if got := s.Boxes(); len(got) != 1 {
		t.Errorf("got sandboxes %v, want one", got)
	}
}

func TestTakenNameIsNotAdopted(t *testing.T) {
	s := langsmithtest.New(t)
	open(t, s, func(spec *sandbox.Spec) { spec.Name = "box" })
	_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Name: "box"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if got := s.Boxes(); len(got) != 1 {
		t.Errorf("got sandboxes %v, want the first alone", got)
	}
}

func TestAttach(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{StartDelay: 100 * time.Millisecond})
	first := open(t, s)
	id := first.Info().ID
	emulate.Run(t, first, "echo kept >f")
	before := s.Sandbox(id)
	s.SetState(id, "stopped")
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.ID, spec.Idle = id, time.Minute
		spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
	})
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	for _, key := range []string{"idle_ttl_seconds", "delete_after_stop_seconds"} {
		if got := s.Sandbox(id)[key]; got != before[key] {
			t.Errorf("%s: got %v, want %v as before", key, got, before[key])
		}
	}
	if err := sb.Close(); err != nil || s.Running() != 1 {
		t.Errorf("close: %v, %d running", err, s.Running())
	}
	_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: "nothing"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	if !errors.Is(err, sandbox.ErrNotFound) || len(s.Boxes()) != 1 {
		t.Errorf("got %v and %v", err, s.Boxes())
	}
}

func TestListAndDestroy(t *testing.T) {
	s := langsmithtest.New(t)
	mine := map[string]string{"app": "talkops", "run": "1"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func() []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), langsmith.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: mine})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].State != "ready" || got[0].Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	s.Behave(langsmithtest.Behaviour{BusyDeletes: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	for range 2 {
		if err := (langsmith.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(); len(got) != 0 {
		t.Errorf("after destroy: got %+v", got)
	}
	spec.ID = "never-was"
	if err := (langsmith.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := langsmithtest.New(t, langsmithtest.Config{StartDelay: 50 * time.Millisecond})
	for _, op := range []string{"create", "get", "execute"} {
		s.Inject(langsmithtest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: `{"message":"Rate limit exceeded"}`})
	}
	begin := time.Now()
	open(t, s)
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("took %v, want the three seconds asked for", took)
	}
}

func TestRefusedConnections(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault langsmithtest.Fault
		code  sandbox.Code
		runs  int
	}{
		{"busy at first", langsmithtest.Fault{Op: "ws", Status: 503, Times: 2}, "", 1},
		{"throttled", langsmithtest.Fault{Op: "ws", Status: 429, Header: map[string]string{"Retry-After": "1"}}, "", 1},
		{"failing", langsmithtest.Fault{Op: "ws", Status: 500, Times: -1}, sandbox.CodeUnavailable, 0},
		{"key refused", langsmithtest.Fault{Op: "ws", Status: 403, Times: -1}, sandbox.CodeUnauthenticated, 0},
		{"not found", langsmithtest.Fault{Op: "ws", Status: 404, Times: -1}, sandbox.CodeNotFound, 0},
		{"closed before the start", langsmithtest.Fault{Op: "ws-execute", Status: 1000}, "", 1},
		{"closed after the start", langsmithtest.Fault{Op: "ws-execute", Status: 1000, Late: true}, "", 1},
		{"refused by a frame", langsmithtest.Fault{Op: "ws-execute", Status: 500, Body: `{"type":"error","error_type":"CommandError","error":"no shell"}`}, sandbox.CodeInternal, 0},
		{"no frame", langsmithtest.Fault{Op: "ws-execute", Status: 200, Body: "<html>"}, sandbox.CodeInternal, 0},
		{"another frame first", langsmithtest.Fault{Op: "ws-execute", Status: 200, Body: `{"type":"news"}`}, "", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := langsmithtest.New(t)
			sb := open(t, s)
			s.Inject(row.fault)
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; exit 5")})
			emulate.WantCode(t, err, row.code)
			if want := 5 * row.runs; exit != want {
				t.Errorf("got exit %d, want %d", exit, want)
			}
			s.Heal()
			if out, _, _ := emulate.Run(t, sb, "cat count 2>/dev/null"); strings.Count(out, "x") != row.runs {
				t.Errorf("it ran %d times, want %d", strings.Count(out, "x"), row.runs)
			}
		})
	}
}

func TestServiceEndsTheCommand(t *testing.T) {
	s := langsmithtest.New(t)
	sb := open(t, s)
	s.Inject(langsmithtest.Fault{Op: "ws-execute", Status: 500, Body: `{"type":"error","error_type":"CommandTimeout","error":"time is up"}`})
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeTimeout)
	if exit != 124 {
		t.Errorf("got exit %d, want 124", exit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := sb.Exec(ctx, sandbox.Cmd{Args: emulate.Sh("true")}); err != nil {
		t.Fatal(err)
	}
	frames := s.Requests("ws-execute")
	if last := frames[len(frames)-1].Body; !strings.Contains(last, `"timeout_seconds":90`) || !strings.Contains(last, `"close_stdin":true`) {
		t.Errorf("got %s, want a limit after the deadline", last)
	}
}

func TestCommandIsFollowedWhenItsStreamBreaks(t *testing.T) {
	for _, status := range []int{1001, 1000, 1011, 0} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := langsmithtest.New(t)
			sb := open(t, s)
			s.Inject(langsmithtest.Fault{Op: "ws-execute", Status: status, Cut: 3, Late: status != 0})
			s.Inject(langsmithtest.Fault{Op: "ws-reconnect", Status: status, Cut: 2, Times: 2, Late: status != 0})
			s.Inject(langsmithtest.Fault{Op: "ws", Status: 502, Skip: 1, Times: 2})
			var out bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; exit 5"), Stdout: &out})
			if exit != 5 || err != nil || out.String() != "x\n" {
				t.Errorf("got %d, %v, %q", exit, err, out.String())
			}
			if n := len(s.Requests("ws-reconnect")); n < 2 {
				t.Errorf("reconnected %d times", n)
			}
		})
	}
}

func TestLostReport(t *testing.T) {
	// The service keeps less than the report; the output is fetched, or it is an error.
	s := langsmithtest.New(t, langsmithtest.Config{Ring: 16})
	sb := open(t, s)
	var out bytes.Buffer
	s.Inject(langsmithtest.Fault{Op: "ws-execute", Late: true})
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("printf 0123456789; printf 0123456789; exit 3"), Stdout: &out})
	if err == nil && (exit != 3 || out.String() != "01234567890123456789") {
		t.Errorf("got %d and %q without an error", exit, out.String())
	}
	if err != nil {
		emulate.WantCode(t, err, sandbox.CodeInternal)
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*langsmithtest.Server, string)
	}{
		{"vanished", (*langsmithtest.Server).Vanish},
		{"stopped", func(s *langsmithtest.Server, id string) { s.SetState(id, "stopped") }},
		{"failed", func(s *langsmithtest.Server, id string) { s.SetState(id, "failed") }},
		{"deleting", func(s *langsmithtest.Server, id string) { s.SetState(id, "deleting") }},
		{"commands lost", (*langsmithtest.Server).LoseCommands},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := langsmithtest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			if row.name == "commands lost" || row.name == "stopped" {
				// What comes next wakes it.
				if out, _, _ := emulate.Run(t, sb, "echo on"); out != "on\n" {
					t.Errorf("afterwards: got %q", out)
				}
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

func TestUnknownStatusIsAnError(t *testing.T) {
	s := langsmithtest.New(t)
	sb := open(t, s)
	s.Behave(langsmithtest.Behaviour{NoExitStatus: true})
	emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeInternal)
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("exit 0")})
	emulate.WantCode(t, err, sandbox.CodeInternal)
	if exit != 0 {
		t.Errorf("got exit %d beside the error", exit)
	}
}

func TestExpiredKey(t *testing.T) {
	s := langsmithtest.New(t)
	sb := open(t, s)
	s.Behave(langsmithtest.Behaviour{ExpiredKey: true})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
}

func TestUnpackAndPack(t *testing.T) {
	s := langsmithtest.New(t)
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
	s := langsmithtest.New(t, langsmithtest.Config{BuildDelay: 300 * time.Millisecond})
	sb := open(t, s)
	for _, text := range []string{"first", "second"} {
		emulate.Run(t, sb, "echo "+text+" >f")
		if err := sandbox.Snapshot(t.Context(), sb, "acme/base"); err != nil {
			t.Fatal(err)
		}
		next := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "acme/base" })
		if out, _, _ := emulate.Run(t, next, "cat f"); out != text+"\n" {
			t.Errorf("got %q, want the newest, %s", out, text)
		}
	}
	_, err := langsmith.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: "system/none"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
}

func TestIdleSandboxIsWoken(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	s := langsmithtest.New(t, langsmithtest.Config{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Idle = 10 * time.Minute })
	id := sb.Info().ID
	emulate.Run(t, sb, "echo kept >f")
	pass(11 * time.Minute)
	if got := s.Sandbox(id)["status"]; got != "stopped" {
		t.Fatalf("the sandbox is %v", got)
	}
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	pass(11 * time.Minute)
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &got); err != nil || got.String() != "kept\n" {
		t.Errorf("got %q, %v", got.String(), err)
	}
	pass(11 * time.Minute)
	s.Sandbox(id)
	pass(time.Hour)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left after an hour in stop: %v", left)
	}
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
}

func TestAttachById(t *testing.T) {
	s := langsmithtest.New(t)
	first := open(t, s)
	id, _ := s.Sandbox(first.Info().ID)["id"].(string)
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID = id })
	if got := sb.Info().ID; got != first.Info().ID {
		t.Errorf("got %q, want the name %q", got, first.Info().ID)
	}
}

func TestListGoesThroughAllPages(t *testing.T) {
	s := langsmithtest.New(t)
	spec := sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"run": "1"}}
	for range 4 {
		open(t, s, func(o *sandbox.Spec) { o.Labels = spec.Labels })
	}
	s.Shrink(3)
	found, err := sandbox.List(t.Context(), langsmith.Provider{}, spec)
	if err != nil || len(found) != 4 {
		t.Errorf("got %d sandboxes, %v; want 4", len(found), err)
	}
}

func TestAnswerThatIsNoFile(t *testing.T) {
	s := langsmithtest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(langsmithtest.Fault{Op: "download", Status: 200, Body: `{"message":"an error with the wrong status"}`})
	var got bytes.Buffer
	emulate.WantCode(t, sb.ReadFile(t.Context(), name, &got), sandbox.CodeInternal)
	if got.Len() != 0 {
		t.Errorf("got %q as content", got.String())
	}
}

// A command may delete what it finds in the temporary directory.
func TestDeletedPrivateDirectory(t *testing.T) {
	s := langsmithtest.New(t)
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
