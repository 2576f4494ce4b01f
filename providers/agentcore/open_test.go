//go:build unix

package agentcore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/agentcore"
	"github.com/talkops-ai/talkops/providers/agentcore/agentcoretest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := agentcoretest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExpiredKey(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	s.Behave(agentcoretest.Behaviour{ExpiredKey: true})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
}

func TestUnpackAndPack(t *testing.T) {
	s := agentcoretest.New(t)
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

func TestOpenSaysWhatItWants(t *testing.T) {
	for _, row := range []struct {
		name     string
		lifetime time.Duration
		want     float64 // seconds
	}{
		{"the lifetime asked for", 90*time.Second + time.Millisecond, 91},
		{"none asked for", 0, 28800},
		{"more than there is", 24 * time.Hour, 28800},
		{"less than makes sense", time.Second, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := agentcoretest.New(t)
			var created sandbox.Info
			sb := open(t, s, func(spec *sandbox.Spec) {
				spec.Name = "mine"
				spec.Labels = map[string]string{"app": "talkops", "run": "a/b c"}
				spec.Lifetime = row.lifetime
				spec.Created = func(info sandbox.Info) {
					created = info
					if n := len(s.Requests("executeCommand")); n != 0 {
						t.Error("the session was used before its id was known")
					}
				}
			})
			info := sb.Info()
			if created.ID == "" || created.ID != info.ID || info.Provider != "agentcore" || !info.Expires.Equal(created.Expires) {
				t.Errorf("created %+v, open %+v", created, info)
			}
			if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
				t.Errorf("working directory: got %q, want %q", out, info.Dir)
			}
			got := s.Sandbox(info.ID)
			if name, _ := got["name"].(string); got["sessionTimeoutSeconds"] != row.want || !strings.HasPrefix(name, "mine_") || len(name) > 100 {
				t.Errorf("got %v", got)
			}
			if left := time.Until(info.Expires) - time.Duration(row.want)*time.Second; left > time.Second || left < -5*time.Second {
				t.Errorf("expires %v, want %v s from now", info.Expires, row.want)
			}
		})
	}
}

func TestWhatIsNotThereIsUnsupportedAtOnce(t *testing.T) {
	s := agentcoretest.New(t)
	for _, spec := range []sandbox.Spec{{Image: "debian:12"}, {Snapshot: "base"}} {
		spec.Settings = s.Settings()
		_, err := agentcore.Provider{}.Open(t.Context(), spec)
		emulate.WantCode(t, err, sandbox.CodeUnsupported)
	}
	long := sandbox.Spec{Settings: s.Settings(), Name: strings.Repeat("long-", 19)}
	_, err := agentcore.Provider{}.Open(t.Context(), long)
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestIdentifier(t *testing.T) {
	const own = "acme_tools-0123456789"
	s := agentcoretest.New(t, agentcoretest.Config{Identifiers: []string{own}})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Options = map[string]any{"identifier": own} })
	interpreter, session, _ := strings.Cut(sb.Info().ID, "/")
	if interpreter != own {
		t.Errorf("got the id %q", sb.Info().ID)
	}
	// The whole id says it all; a session's alone needs the option.
	open(t, s, func(spec *sandbox.Spec) { spec.ID = sb.Info().ID })
	open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Options = session, map[string]any{"identifier": own} })
	_, err := agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: session})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	_, err = agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Options: map[string]any{"identifier": "none-0123456789"}})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	_, err = agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Options: map[string]any{"identifier": "../x"}})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestSignIn(t *testing.T) {
	s := agentcoretest.New(t)
	for _, row := range []struct {
		name   string
		change func(map[string]string)
		code   sandbox.Code
		says   string
	}{
		{"nothing", func(m map[string]string) { delete(m, "access_key_id"); delete(m, "secret_access_key") }, sandbox.CodeUnauthenticated, "aws sso login"},
		{"no secret", func(m map[string]string) { delete(m, "secret_access_key") }, sandbox.CodeUnauthenticated, "AWS_SECRET_ACCESS_KEY"},
		{"no key id", func(m map[string]string) { delete(m, "access_key_id") }, sandbox.CodeUnauthenticated, "AWS_ACCESS_KEY_ID"},
		{"no region", func(m map[string]string) { delete(m, "region") }, sandbox.CodeInvalidArgument, "AWS_REGION"},
		{"an odd region", func(m map[string]string) { m["region"] = "x.example.com/" }, sandbox.CodeInvalidArgument, "region"},
		{"no such profile", func(m map[string]string) { m["profile"] = "nobody" }, sandbox.CodeUnauthenticated, "nobody"},
		{"an address that is not safe", func(m map[string]string) { m["endpoint"] = "http://example.com" }, sandbox.CodeInvalidArgument, "https"},
	} {
		t.Run(row.name, func(t *testing.T) {
			settings := s.Settings()
			row.change(settings)
			spec := sandbox.Spec{Settings: settings}
			_, err := agentcore.Provider{}.Open(t.Context(), spec)
			emulate.WantCode(t, err, row.code)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want a word on %s", err, row.says)
			}
			emulate.WantCode(t, agentcore.Provider{}.SignedIn(t.Context(), spec), sandbox.CodeUnauthenticated)
		})
	}
	if err := (agentcore.Provider{}).SignedIn(t.Context(), sandbox.Spec{Settings: s.Settings()}); err != nil {
		t.Errorf("signed in: %v", err)
	}
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests without signing in", n)
	}

	for _, wrong := range []string{"access_key_id", "secret_access_key"} {
		settings := s.Settings()
		settings[wrong], settings["session_token"] = "wrong-key-123", "token-of-a-session"
		_, err := agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
		emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
		for key, value := range settings {
			if d, _ := (agentcore.Provider{}).Describe().Setting(key); d.Secret && strings.Contains(err.Error(), value) {
				t.Errorf("%s is shown: %v", key, err)
			}
		}
	}
}

func TestProfilesSignIn(t *testing.T) {
	s := agentcoretest.New(t)
	settings := s.Settings()
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, "config")
	config := fmt.Sprintf(`[profile keys]
region = %[1]s
aws_access_key_id = %[2]s
aws_secret_access_key = %[3]s
services = here

[profile program]
region = %[1]s
credential_process = %[4]s
services = here

[profile browser]
region = %[1]s
sso_session = acme
sso_account_id = 123456789012
sso_role_name = acme

[profile machine]
region = %[1]s
role_arn = arn:aws:iam::123456789012:role/acme
credential_source = Ec2InstanceMetadata

[sso-session acme]
sso_start_url = https://acme.example.com/start
sso_region = %[1]s

[services here]
bedrock_agentcore =
  endpoint_url = %[5]s
`, settings["region"], settings["access_key_id"], settings["secret_access_key"], filepath.Join(home, "program"), s.URL())
	program := fmt.Sprintf("#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"%s\"}'\n", settings["access_key_id"], settings["secret_access_key"])
	if err := errors.Join(os.WriteFile(file, []byte(config), 0o600), os.WriteFile(filepath.Join(home, "program"), []byte(program), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	for _, profile := range []string{"keys", "program"} {
		spec := sandbox.Spec{Settings: map[string]string{"profile": profile}}
		if err := (agentcore.Provider{}).SignedIn(t.Context(), spec); err != nil {
			t.Errorf("%s: %v", profile, err)
		}
		sb, err := agentcore.Provider{}.Open(t.Context(), spec)
		if err != nil {
			t.Errorf("%s: %v", profile, err)
			continue
		}
		sb.Close()
	}
	if n := len(s.Boxes()); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}

	browser := sandbox.Spec{Settings: map[string]string{"profile": "browser"}}
	err := agentcore.Provider{}.SignedIn(t.Context(), browser)
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if err == nil || !strings.Contains(err.Error(), "aws sso login") {
		t.Errorf("got %v", err)
	}
	_, err = agentcore.Provider{}.Open(t.Context(), browser)
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if err := (agentcore.Provider{}).SignedIn(t.Context(), sandbox.Spec{Settings: map[string]string{"profile": "machine"}}); err != nil {
		t.Errorf("a profile that names the machine's own role: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "program"), []byte("#!/bin/sh\necho leaked-secret-of-program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: map[string]string{"profile": "program"}})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(fmt.Sprint(err), "leaked") {
		t.Errorf("what a program printed is shown: %v", err)
	}
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave agentcoretest.Behaviour
		fault  agentcoretest.Fault
		code   sandbox.Code
	}{
		{"ended while starting", agentcoretest.Behaviour{EndIn: "TERMINATED"}, agentcoretest.Fault{}, sandbox.CodeGone},
		{"never ready", agentcoretest.Behaviour{NeverReady: true}, agentcoretest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", agentcoretest.Behaviour{}, agentcoretest.Fault{Op: "start", Hold: true}, sandbox.CodeTimeout},
		{"deletion refused at first", agentcoretest.Behaviour{NeverReady: true, BusyDeletes: 2}, agentcoretest.Fault{}, sandbox.CodeTimeout},
		{"quota", agentcoretest.Behaviour{}, agentcoretest.Fault{Op: "start", Status: 402, Body: `{"message":"Maximum number of sessions"}`, Header: map[string]string{"X-Amzn-Errortype": "ServiceQuotaExceededException"}}, sandbox.CodeQuota},
		{"not allowed", agentcoretest.Behaviour{Denied: true}, agentcoretest.Fault{}, sandbox.CodePermissionDenied},
		{"not allowed to run anything", agentcoretest.Behaviour{}, agentcoretest.Fault{Op: "executeCommand", Status: 403, Times: -1, Header: map[string]string{"X-Amzn-Errortype": "AccessDeniedException"}}, sandbox.CodePermissionDenied},
		{"answers without a status", agentcoretest.Behaviour{Twist: map[string]string{"executeCommand": agentcoretest.TwistNoExit}}, agentcoretest.Fault{}, sandbox.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := agentcoretest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := agentcore.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if row.code == sandbox.CodePermissionDenied && row.behave.Denied && !strings.Contains(fmt.Sprint(err), "bedrock-agentcore:") {
				t.Errorf("got %v, want the missing right", err)
			}
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := agentcoretest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := agentcore.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	for _, times := range []int{1, -1} {
		t.Run(fmt.Sprintf("%d times", times), func(t *testing.T) {
			s := agentcoretest.New(t)
			s.Inject(agentcoretest.Fault{Op: "start", Late: true, Times: times})
			sb := open(t, s)
			if got := s.Boxes(); !slices.Equal(got, []string{sb.Info().ID}) || sb.Info().Expires.IsZero() {
				t.Errorf("got sessions %v and %+v, want one", got, sb.Info())
			}
		})
	}
}

func TestSameNameIsAnotherSession(t *testing.T) {
	s := agentcoretest.New(t)
	a := open(t, s, func(spec *sandbox.Spec) { spec.Name = "box" })
	b := open(t, s, func(spec *sandbox.Spec) { spec.Name = "box" })
	if a.Info().ID == b.Info().ID || len(s.Boxes()) != 2 {
		t.Errorf("got %v", s.Boxes())
	}
}

func TestAttach(t *testing.T) {
	var later atomic.Int64
	s := agentcoretest.New(t, agentcoretest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	first := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = time.Hour })
	id := first.Info().ID
	emulate.Run(t, first, "echo kept >f")
	before := fmt.Sprint(s.Sandbox(id))
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.ID, spec.Lifetime = id, 2*time.Hour
		spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
	})
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	if !sb.Info().Expires.Equal(first.Info().Expires) || sb.Info().Dir != first.Info().Dir || sb.Info().ID != id {
		t.Errorf("got %+v, want %+v", sb.Info(), first.Info())
	}
	if after := fmt.Sprint(s.Sandbox(id)); after != before {
		t.Errorf("it was changed: %s, was %s", after, before)
	}
	if err := sb.Close(); err != nil || s.Running() != 1 {
		t.Errorf("close: %v, %d running", err, s.Running())
	}

	// What cannot be used is left as it is.
	s.Inject(agentcoretest.Fault{Op: "executeCommand", Status: 403, Times: -1})
	_, err := agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: id})
	emulate.WantCode(t, err, sandbox.CodePermissionDenied)
	s.Heal()
	if n := len(s.Requests("stop")); n != 0 || s.Running() != 1 {
		t.Errorf("%d stops, %d running", n, s.Running())
	}
	for _, unknown := range []string{"01UNKNOWN", "aws.codeinterpreter.v1/01UNKNOWN", "no such id"} {
		_, err = agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: unknown})
		emulate.WantCode(t, err, sandbox.CodeNotFound)
	}

	// Nothing brings back a session whose time is over.
	later.Store(int64(time.Hour))
	_, err = agentcore.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: id})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	_, err = first.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	if n := len(s.Requests("start")); n != 1 {
		t.Errorf("%d sessions were started", n)
	}
}

func TestListAndDestroy(t *testing.T) {
	s := agentcoretest.New(t, agentcoretest.Config{Page: 1})
	mine := map[string]string{"app": "talkops", "run": "1"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels, spec.Name = mine, "first" })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func(labels map[string]string) []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), agentcore.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(mine); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].Name != "first" || got[0].State != "READY" || got[0].Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	if got := list(map[string]string{"app": "talkops"}); len(got) != 2 {
		t.Errorf("got %+v, want both", got)
	}
	if got := list(map[string]string{"app": "other"}); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
	s.Behave(agentcoretest.Behaviour{BusyDeletes: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	for range 2 {
		if err := (agentcore.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(mine); len(got) != 0 {
		t.Errorf("after destroy: got %+v", got)
	}
	for _, id := range []string{"01NEVERWAS", "never-was"} {
		spec.ID = id
		if err := (agentcore.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Errorf("destroying nothing: %v", err)
		}
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := agentcoretest.New(t)
	for _, op := range []string{"start", "executeCommand", "startCommandExecution"} {
		s.Inject(agentcoretest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After": "1", "X-Amzn-Errortype": "ThrottlingException"}, Body: `{"message":"Rate exceeded"}`})
	}
	begin := time.Now()
	if out, _, _ := emulate.Run(t, open(t, s), "echo hi"); out != "hi\n" {
		t.Errorf("got %q", out)
	}
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("took %v, want the three seconds asked for", took)
	}
}

func TestRefusedCommandIsSentOnce(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	s.Inject(agentcoretest.Fault{Op: "startCommandExecution", Status: 500, Times: -1})
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count")})
	emulate.WantCode(t, err, sandbox.CodeUnavailable)
	if n := len(s.Requests("startCommandExecution")); n != 1 {
		t.Errorf("the command was sent %d times", n)
	}
}

func TestCommandIsFollowedAfterALostAnswer(t *testing.T) {
	for _, fault := range []agentcoretest.Fault{{Late: true}, {Cut: 1}, {Cut: 100}} {
		s := agentcoretest.New(t)
		sb := open(t, s)
		fault.Op = "startCommandExecution"
		s.Inject(fault)
		s.Inject(agentcoretest.Fault{Op: "executeCommand", Skip: 1, Late: true, Times: 3})
		s.Inject(agentcoretest.Fault{Op: "executeCommand", Skip: 1, Status: 502, Times: 2})
		var out bytes.Buffer
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; exit 5"), Stdout: &out})
		if exit != 5 || err != nil || out.String() != "x\n" {
			t.Errorf("got %d, %v, %q", exit, err, out.String())
		}
		if n := len(s.Requests("startCommandExecution")); n != 1 {
			t.Errorf("the command was sent %d times", n)
		}
	}
}

func TestOddAnswers(t *testing.T) {
	for _, twist := range []string{
		agentcoretest.TwistEmpty, agentcoretest.TwistTruncated, agentcoretest.TwistCorrupt, agentcoretest.TwistThrottled, agentcoretest.TwistNoExit,
	} {
		t.Run("start "+twist, func(t *testing.T) {
			s := agentcoretest.New(t)
			sb := open(t, s)
			s.Behave(agentcoretest.Behaviour{Twist: map[string]string{"startCommandExecution": twist}})
			stdout, _, exit := emulate.Run(t, sb, "echo x >>count; cat count; exit 6")
			if exit != 6 || stdout != "x\n" {
				t.Errorf("got %d, %q", exit, stdout)
			}
		})
	}
	for _, twist := range []string{agentcoretest.TwistSeveral, agentcoretest.TwistUnknown} {
		t.Run("all "+twist, func(t *testing.T) {
			s := agentcoretest.New(t)
			s.Behave(agentcoretest.Behaviour{Twist: map[string]string{
				"executeCommand": twist, "startCommandExecution": twist, "readFiles": twist, "writeFiles": twist,
			}})
			sb := open(t, s)
			if stdout, _, exit := emulate.Run(t, sb, "echo hi; exit 6"); exit != 6 || stdout != "hi\n" {
				t.Errorf("got %d, %q", exit, stdout)
			}
		})
	}
	for _, twist := range []string{agentcoretest.TwistEmpty, agentcoretest.TwistTruncated, agentcoretest.TwistCorrupt, agentcoretest.TwistThrottled, agentcoretest.TwistNoExit} {
		t.Run("script "+twist, func(t *testing.T) {
			t.Parallel()
			s := agentcoretest.New(t)
			sb := open(t, s)
			s.Behave(agentcoretest.Behaviour{Twist: map[string]string{"executeCommand": twist}})
			if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644); err == nil {
				t.Error("a write without a status succeeded")
			}
			if err := sb.ReadFile(t.Context(), sb.Info().Dir+"/f", io.Discard); err == nil {
				t.Error("a read without a status succeeded")
			}
		})
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*agentcoretest.Server, string)
	}{
		{"vanished", (*agentcoretest.Server).Vanish},
		{"stopped", (*agentcoretest.Server).Stop},
		{"tasks lost", (*agentcoretest.Server).LoseTasks},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := agentcoretest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			if row.name == "tasks lost" {
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

func TestDeletedPrivateDirectory(t *testing.T) {
	s := agentcoretest.New(t)
	sb := open(t, s)
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("rm -rf ../.talkops-*; echo out"), Stdout: io.Discard})
	if err == nil {
		t.Errorf("a command whose output is lost ended with %d and no error", exit)
	}
	if err := sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644); err != nil {
		t.Errorf("writing afterwards: %v", err)
	}
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "x" {
		t.Errorf("afterwards: got %q", out)
	}
}
