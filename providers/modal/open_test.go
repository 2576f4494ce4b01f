//go:build unix

package modal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/modal/modaltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenSaysWhatItWants(t *testing.T) {
	s := modaltest.New(t, modaltest.Config{StartDelay: 150 * time.Millisecond})
	s.Behave(modaltest.Behaviour{SlowBuild: 100 * time.Millisecond})
	var created sandbox.Info
	begin := time.Now()
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Lifetime = 90*time.Second + time.Millisecond
		spec.Image = "debian:12"
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("TaskExecStart")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
	})
	info := sb.Info()
	if created.ID == "" || created.ID != info.ID || info.Provider != "modal" {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if left := info.Expires.Sub(begin); left < 80*time.Second || left > 92*time.Second {
		t.Errorf("expires after %v, want 91s", left)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	got := s.Sandbox(info.ID)
	for key, want := range map[string]any{"timeoutSecs": 91.0, "idleTimeoutSecs": 7200.0, "name": "mine"} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}
	if tags := got["tags"].(map[string]string); tags["app"] != "talkops" || tags["talkops-opening"] == "" {
		t.Errorf("tags: got %v", tags)
	}
	if r := s.Requests("ImageGetOrCreate"); len(r) != 1 || !strings.Contains(r[0].Body, "FROM debian:12") || !strings.Contains(r[0].Body, "ENTRYPOINT []") {
		t.Errorf("image: got %+v", r)
	}
}

func TestALifetimeIsAlwaysSet(t *testing.T) {
	s := modaltest.New(t)
	for _, row := range []struct{ asked, got time.Duration }{
		{0, 24 * time.Hour},
		{time.Hour, time.Hour},
		{100 * time.Hour, 24 * time.Hour},
	} {
		sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = row.asked })
		if got := s.Sandbox(sb.Info().ID)["timeoutSecs"]; got != row.got.Seconds() {
			t.Errorf("asked for %v: got %v, want %v", row.asked, got, row.got.Seconds())
		}
	}
}

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := modaltest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := modaltest.New(t)
	dir := t.TempDir()
	url := s.URL()
	good := "token_id = 'ak-test'\ntoken_secret = 'as-test-secret'\nserver_url = '" + url + "'\n"
	for _, row := range []struct {
		name     string
		settings map[string]string
		file     string
		code     sandbox.Code
		says     string
	}{
		{name: "token pair", settings: map[string]string{"token_id": "ak-test", "token_secret": "as-test-secret", "server_url": url}},
		{name: "active profile", file: "[one]\n" + strings.ReplaceAll(good, "ak-test", "ak-other") + "[two]\nactive = true\n" + good},
		{name: "named profile", settings: map[string]string{"profile": "one"}, file: "[one]\n" + good + "[two]\nactive = true\n"},
		{name: "settings go before the file", settings: map[string]string{"token_secret": "as-test-secret"}, file: "[one]\nactive = true\n" + strings.ReplaceAll(good, "as-test-secret", "as-other")},
		{name: "nothing", code: sandbox.CodeUnauthenticated, says: "modal setup"},
		{name: "no active profile", file: "[one]\n" + good, code: sandbox.CodeUnauthenticated, says: "no active profile"},
		{name: "two active profiles", file: "[one]\nactive = true\n" + good + "[two]\nactive = true\n" + good, code: sandbox.CodeInvalidArgument, says: "two active profiles"},
		{name: "unknown profile", settings: map[string]string{"profile": "three"}, file: "[one]\n" + good, code: sandbox.CodeUnauthenticated, says: "three"},
		{name: "half a pair", settings: map[string]string{"token_id": "ak-test"}, code: sandbox.CodeUnauthenticated, says: "MODAL_TOKEN_SECRET"},
		{name: "the other half", settings: map[string]string{"token_secret": "as-test-secret"}, code: sandbox.CodeUnauthenticated, says: "MODAL_TOKEN_ID"},
		{name: "OAuth", file: "[one]\nactive = true\noauth_refresh_token = 'x'\n", code: sandbox.CodeUnauthenticated, says: "OAuth"},
		{name: "broken file", file: "[one\ntoken_secret = 'as-test-secret'", code: sandbox.CodeInvalidArgument, says: "line 1"},
		{name: "plaintext to elsewhere", settings: map[string]string{"token_id": "ak-test", "token_secret": "as-test-secret", "server_url": "http://example.com"}, code: sandbox.CodeInvalidArgument, says: "https"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := len(s.Requests(""))
			settings := map[string]string{"config_path": filepath.Join(dir, strings.ReplaceAll(row.name, " ", "-"))}
			for k, v := range row.settings {
				settings[k] = v
			}
			if row.file != "" {
				if err := os.WriteFile(settings["config_path"], []byte(row.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			sb, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
			emulate.WantCode(t, err, row.code)
			if err == nil {
				sb.Close()
				return
			}
			if !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "as-test-secret") {
				t.Errorf("got %v, want it to say %q and no secret", err, row.says)
			}
			if n := len(s.Requests("")) - before; n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}

	settings := s.Settings()
	settings["token_secret"] = "as-wrong-123"
	_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "as-wrong-123") {
		t.Errorf("the secret is shown: %v", err)
	}
}

func TestTheUsersOwnProfileFile(t *testing.T) {
	s := modaltest.New(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := "[me]\nactive = true\ntoken_id = 'ak-test'\ntoken_secret = 'as-test-secret'\nserver_url = '" + s.URL() + "'\n"
	if err := os.WriteFile(filepath.Join(home, ".modal.toml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	values := modal.Provider{}.Describe().Values(func(string) string { return "" })
	if _, ok := (modal.Provider{}).Describe().Login(values); !ok {
		t.Error("the profile file is no way to sign in")
	}
	sb, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: values})
	if err != nil {
		t.Fatal(err)
	}
	sb.Close()
}

func TestAnUntrustedRouterIsRefused(t *testing.T) {
	for _, address := range []string{"http://127.0.0.1:1", "127.0.0.1:1", "ftp://example.com\x1b[2J", "https://"} {
		s := modaltest.New(t)
		s.Behave(modaltest.Behaviour{RouterURL: address})
		_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings()})
		emulate.WantCode(t, err, sandbox.CodeInternal)
		if err != nil && strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q", err)
		}
		if left := s.Boxes(); len(left) != 0 {
			t.Errorf("left running: %v", left)
		}
	}
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave modaltest.Behaviour
		fault  modaltest.Fault
		code   sandbox.Code
	}{
		{"ends at once", modaltest.Behaviour{ExitsAtOnce: true}, modaltest.Fault{}, sandbox.CodeUnavailable},
		{"ends at once, seen late", modaltest.Behaviour{ExitsAtOnce: true, NoRouterAccess: true}, modaltest.Fault{}, sandbox.CodeUnavailable},
		{"build failed", modaltest.Behaviour{BuildFails: "no such image"}, modaltest.Fault{}, sandbox.CodeInvalidArgument},
		{"build failed later", modaltest.Behaviour{BuildFails: "no such image", SlowBuild: 100 * time.Millisecond}, modaltest.Fault{}, sandbox.CodeInvalidArgument},
		{"build never ends", modaltest.Behaviour{SlowBuild: time.Hour}, modaltest.Fault{}, sandbox.CodeTimeout},
		{"never ready", modaltest.Behaviour{NeverReady: true}, modaltest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", modaltest.Behaviour{}, modaltest.Fault{Op: "SandboxCreateV2", Hold: true}, sandbox.CodeTimeout},
		{"commands never start", modaltest.Behaviour{ForgetfulRouter: true}, modaltest.Fault{}, sandbox.CodeUnavailable},
		{"ending refused at first", modaltest.Behaviour{RouterURL: "http://x"}, modaltest.Fault{Op: "SandboxTerminateV2", Status: 503, Times: 2}, sandbox.CodeInternal},
		{"quota", modaltest.Behaviour{}, modaltest.Fault{Op: "SandboxCreateV2", Status: 429, Body: "Workspace limit of 100 containers reached"}, sandbox.CodeQuota},
		{"image unknown", modaltest.Behaviour{}, modaltest.Fault{Op: "SandboxCreateV2", Status: 404}, sandbox.CodeNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := modaltest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := modal.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name  string
		delay time.Duration
		when  string
	}{
		{"while Modal looks for a computer", time.Hour, "SandboxCreateV2"},
		{"while the answer is on its way", 300 * time.Millisecond, "SandboxCreateV2"},
		{"before it was asked for", 0, "AppGetOrCreate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := modaltest.New(t, modaltest.Config{StartDelay: row.delay})
			if row.delay == 0 {
				s.Inject(modaltest.Fault{Op: row.when, Hang: true})
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				for len(s.Requests(row.when)) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}()
			_, err := modal.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, sandbox.CodeCancelled)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	for _, behave := range []modaltest.Behaviour{{}, {NoIdempotency: true}} {
		s := modaltest.New(t)
		s.Behave(behave)
		s.Inject(modaltest.Fault{Op: "SandboxCreateV2", Late: true})
		sb := open(t, s)
		if got := s.Boxes(); !slices.Equal(got, []string{sb.Info().ID}) {
			t.Errorf("got sandboxes %v, want %s", got, sb.Info().ID)
		}
		made := s.Requests("SandboxCreateV2")
		if len(made) != 2 || made[0].Header.Get("X-Idempotency-Key") == "" || made[0].Header.Get("X-Idempotency-Key") != made[1].Header.Get("X-Idempotency-Key") {
			t.Errorf("the creation was repeated under another key: %d requests", len(made))
		}
	}
}

func TestTakenNameIsNotAdopted(t *testing.T) {
	s := modaltest.New(t)
	first := open(t, s, func(spec *sandbox.Spec) { spec.Name = "box" })
	_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Name: "box"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if got := s.Boxes(); !slices.Equal(got, []string{first.Info().ID}) {
		t.Errorf("got sandboxes %v, want the first alone", got)
	}
	_, err = modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Name: "not a name"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestAttach(t *testing.T) {
	for _, backend := range []bool{false, true} {
		t.Run(fmt.Sprintf("older backend %v", backend), func(t *testing.T) {
			s := modaltest.New(t, modaltest.Config{Old: backend})
			first := open(t, s)
			id := first.Info().ID
			emulate.Run(t, first, "echo kept >f")
			before := s.Sandbox(id)
			sb := open(t, s, func(spec *sandbox.Spec) {
				spec.ID, spec.Lifetime = id, time.Minute
				spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
			})
			if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
				t.Errorf("got %q", out)
			}
			if d := sb.Info().Expires.Sub(first.Info().Expires).Abs(); d > 5*time.Second {
				t.Errorf("expires at %v, want %v", sb.Info().Expires, first.Info().Expires)
			}
			for _, key := range []string{"timeoutSecs", "idleTimeoutSecs"} {
				if got := s.Sandbox(id)[key]; got != before[key] {
					t.Errorf("%s: got %v, want %v as before", key, got, before[key])
				}
			}
			if err := sb.Close(); err != nil || s.Running() != 1 {
				t.Errorf("close: %v, %d running", err, s.Running())
			}
			_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: "nothing"})
			emulate.WantCode(t, err, sandbox.CodeNotFound)
			if !errors.Is(err, sandbox.ErrNotFound) || len(s.Boxes()) != 1 {
				t.Errorf("got %v and %v", err, s.Boxes())
			}
			spec := sandbox.Spec{Settings: s.Settings(), ID: id}
			if err := (modal.Provider{}).Destroy(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			_, err = modal.Provider{}.Open(t.Context(), spec)
			emulate.WantCode(t, err, sandbox.CodeGone)
		})
	}
}

func TestFailedAttachLeavesTheMachine(t *testing.T) {
	s := modaltest.New(t)
	first := open(t, s)
	s.Inject(modaltest.Fault{Op: "TaskExecStart", Status: 400, Times: -1})
	_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: first.Info().ID})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if len(s.Boxes()) != 1 || len(s.Requests("SandboxTerminateV2")) != 0 {
		t.Errorf("the machine was touched")
	}
}

func TestListAndDestroy(t *testing.T) {
	s := modaltest.New(t, modaltest.Config{PageSize: 2})
	mine := map[string]string{"app": "talkops", "run": "1"}
	list := func() []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), modal.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: mine})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(); len(got) != 0 {
		t.Errorf("before anything was made: got %+v", got)
	}
	var ids []string
	for range 5 {
		ids = append(ids, open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine }).Info().ID)
		open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	}
	got := list()
	var found []string
	for _, l := range got {
		found = append(found, l.ID)
		if l.State != "running" || l.Created.IsZero() || l.Expires.Sub(l.Created) != 24*time.Hour {
			t.Errorf("got %+v", l)
		}
	}
	slices.Reverse(found)
	if !slices.Equal(found, ids) {
		t.Errorf("got %v, want %v", found, ids)
	}
	s.Inject(modaltest.Fault{Op: "SandboxTerminateV2", Status: 503, Times: 3})
	spec := sandbox.Spec{Settings: s.Settings(), ID: ids[0]}
	for range 2 {
		if err := (modal.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(); len(got) != 4 {
		t.Errorf("after destroy: got %+v", got)
	}
	spec.ID = "never-was"
	if err := (modal.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := modaltest.New(t)
	for _, op := range []string{"AppGetOrCreate", "SandboxCreateV2", "TaskExecStart"} {
		s.Inject(modaltest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: "Rate limit exceeded"})
	}
	begin := time.Now()
	open(t, s)
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("took %v, want the three seconds asked for", took)
	}
}

func TestRefusedCommandDoesNotRun(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	before := len(s.Requests("TaskExecStart"))
	s.Inject(modaltest.Fault{Op: "TaskExecStart", Status: 400})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count")})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if n := len(s.Requests("TaskExecStart")) - before; n != 1 {
		t.Errorf("the command was sent %d times", n)
	}
}

func TestCommandIsFollowedAfterALostAnswer(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	before := len(s.Requests("TaskExecStart"))
	s.Inject(modaltest.Fault{Op: "TaskExecStart", Late: true})
	s.Inject(modaltest.Fault{Op: "TaskExecWait", Late: true, Times: 3})
	s.Inject(modaltest.Fault{Op: "TaskExecWait", Status: 502, Times: 2})
	s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Status: 502, Times: 2})
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; exit 5"), Stdout: &out})
	if exit != 5 || err != nil || out.String() != "x\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
	ids := map[string]bool{}
	for _, r := range s.Requests("TaskExecStart")[before:] {
		_, id, _ := strings.Cut(r.Body, `"execId":`)
		ids[id[:40]] = true
	}
	if len(ids) != 1 {
		t.Errorf("the command was started under %d ids", len(ids))
	}
}

func TestExpiredRouterTokenIsRenewed(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	var once atomic.Bool
	out := emulate.NewNotice()
	go func() {
		<-out.First
		s.ExpireRouter(sb.Info().ID)
		s.Inject(modaltest.Fault{Op: "TaskExecStdioRead", Cut: 1})
		once.Store(true)
	}()
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 1; cat; exit 2"), Stdin: strings.NewReader("input"), Stdout: out})
	if exit != 2 || err != nil || out.String() != "on\ninput" || !once.Load() {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
	if stdout, _, exit := emulate.Run(t, sb, "echo again"); stdout != "again\n" || exit != 0 {
		t.Errorf("afterwards: got %q, %d", stdout, exit)
	}
}

func TestOutputThatEndsLateOrNever(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave modaltest.Behaviour
	}{
		{"a child holds the pipes", modaltest.Behaviour{OpenStreams: true}},
		{"the status comes first", modaltest.Behaviour{LateOutput: time.Second}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := modaltest.New(t)
			sb := open(t, s)
			s.Behave(row.behave)
			var out, errOut bytes.Buffer
			begin := time.Now()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("head -c 70000 /dev/zero; echo end >&2; exit 3"), Stdout: &out, Stderr: &errOut})
			if exit != 3 || err != nil || out.Len() != 70000 || errOut.String() != "end\n" {
				t.Errorf("got %d, %v, %d bytes, %q", exit, err, out.Len(), errOut.String())
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestLostCommandIsAnError(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	s.Behave(modaltest.Behaviour{ForgetfulRouter: true})
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	if exit != 0 || errors.Is(err, context.Canceled) {
		t.Errorf("got %d, %v", exit, err)
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	state := func(state string) func(*modaltest.Server, string) {
		return func(s *modaltest.Server, id string) { s.SetState(id, state) }
	}
	for _, row := range []struct {
		name string
		end  func(*modaltest.Server, string)
		says string
	}{
		{"vanished", (*modaltest.Server).Vanish, "no longer exists"},
		{"ended", state("terminated"), "was ended"},
		{"lifetime over", state("timeout"), "lifetime"},
		{"idle", state("idle_timeout"), "not used"},
		{"evicted", state("memory_manager_eviction"), "memory"},
		{"command lost", (*modaltest.Server).LoseCommands, "lost"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := modaltest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" || err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %d, %q, %v", exit, out.String(), err)
			}
			if row.name == "command lost" {
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

func TestMachinesEndByTheClock(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	s := modaltest.New(t, modaltest.Config{Now: func() time.Time { return time.Unix(0, now.Load()) }})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime, spec.Idle = time.Hour, 20*time.Minute })
	other := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = 10 * time.Hour })
	now.Add(int64(19 * time.Minute))
	emulate.Run(t, sb, "true")
	now.Add(int64(19 * time.Minute))
	emulate.Run(t, sb, "true")
	now.Add(int64(23 * time.Minute))
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	emulate.Run(t, other, "true")
}

func TestUnknownStatusIsAnError(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	s.Behave(modaltest.Behaviour{NoExitStatus: true})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeInternal)
	emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeInternal)
}

func TestExpiredKey(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	s.Behave(modaltest.Behaviour{ExpiredKey: true})
	s.ExpireRouter(sb.Info().ID)
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
}

func TestUnpackAndPack(t *testing.T) {
	s := modaltest.New(t)
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
	s := modaltest.New(t)
	sb := open(t, s)
	emulate.Run(t, sb, "echo kept >f")
	if err := sandbox.Snapshot(t.Context(), sb, "base"); err != nil {
		t.Fatal(err)
	}
	emulate.WantCode(t, sandbox.Snapshot(t.Context(), sb, "base"), sandbox.CodeInvalidArgument)
	emulate.WantCode(t, sandbox.Snapshot(t.Context(), sb, ""), sandbox.CodeInvalidArgument)
	next := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "base" })
	if out, _, _ := emulate.Run(t, next, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	for _, name := range []string{"none", "im-0000000000000000000000"} {
		_, err := modal.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: name})
		emulate.WantCode(t, err, sandbox.CodeNotFound)
	}
	image, _ := s.Sandbox(next.Info().ID)["imageId"].(string)
	same := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = image })
	if out, _, _ := emulate.Run(t, same, "cat f"); out != "kept\n" {
		t.Errorf("by the image's id: got %q", out)
	}
}

func TestStandardInput(t *testing.T) {
	s := modaltest.New(t)
	sb := open(t, s)
	input := strings.Repeat("0123456789abcdef", 200000)
	s.Inject(modaltest.Fault{Op: "TaskExecStdinWrite", Late: true})
	s.Inject(modaltest.Fault{Op: "TaskExecStdinWrite", Skip: 1, Status: 503, Times: 2})
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader(input), Stdout: &out})
	if exit != 0 || err != nil || out.String() != input {
		t.Errorf("got %d, %v, %d bytes; want %d", exit, err, out.Len(), len(input))
	}
	// A command need not take it.
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("exec <&-; exit 6"), Stdin: strings.NewReader(input)})
	if exit != 6 || err != nil {
		t.Errorf("input nobody reads: got %d, %v", exit, err)
	}
	// What stands still does not hold the command up.
	still, hold := newPipe(t)
	defer hold.Close()
	exit, err = sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("exit 7"), Stdin: still})
	if exit != 7 || err != nil {
		t.Errorf("input that never comes: got %d, %v", exit, err)
	}
	_, err = sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("cat >copy"), Stdin: emulate.Failing{}})
	if !errors.Is(err, emulate.ErrSource) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, w
}

func TestNothingIsLeftRunningHere(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := modaltest.Start(modaltest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Settings: s.Settings()}
	sb, err := modal.Provider{}.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	emulate.Run(t, sb, "echo on; nohup sleep 60 >/dev/null 2>&1 &")
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = sb.Exec(short, sandbox.Cmd{Args: emulate.Sh("cat"), Stdin: strings.NewReader("x")})
	emulate.WantCode(t, err, "")
	_, err = sb.Exec(short, sandbox.Cmd{Args: emulate.Sh("sleep 60")})
	emulate.WantCode(t, err, sandbox.CodeTimeout)
	if _, err := (modal.Provider{}).List(t.Context(), spec); err != nil {
		t.Error(err)
	}
	spec.ID = sb.Info().ID
	if err := (modal.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Error(err)
	}
	_, err = modal.Provider{}.Open(t.Context(), spec)
	emulate.WantCode(t, err, sandbox.CodeGone)
	sb.Close()
	s.Close()
	for n := 0; runtime.NumGoroutine() > before; n++ {
		if n == 100 {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(20 * time.Millisecond)
	}
}
