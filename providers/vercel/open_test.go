//go:build unix

package vercel_test

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
	"github.com/talkops-ai/talkops/providers/vercel"
	"github.com/talkops-ai/talkops/providers/vercel/verceltest"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// told is a Progress that keeps what it hears.
type told struct {
	mu    sync.Mutex
	heard []string
}

func (p *told) hear(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, what)
}

func (p *told) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.heard, "\n")
}

func TestOpenSaysWhatItWants(t *testing.T) {
	s := verceltest.New(t, verceltest.Config{StartDelay: 150 * time.Millisecond})
	var created sandbox.Info
	var progress told
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Lifetime = 90 * time.Minute
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("run")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
		spec.Progress = progress.hear
	})
	info := sb.Info()
	if created.ID != "mine" || info.ID != "mine" || info.Provider != "vercel" {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if left := time.Until(info.Expires); left < 89*time.Minute || left > 90*time.Minute {
		t.Errorf("it expires in %v, want 90m", left)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	got := s.Sandbox("mine")
	asked := got["asked"].(map[string]any)
	if asked["timeout"] != 5400000.0 || asked["persistent"] != false || asked["image"] != nil || asked["source"] != nil {
		t.Errorf("asked for %v", asked)
	}
	if tags := got["tags"].(map[string]string); tags["app"] != "talkops" || len(tags) != 2 {
		t.Errorf("tags: got %v", tags)
	}
	for _, want := range []string{"sandbox is pending", "working directory is " + info.Dir + ", not /vercel/sandbox"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress: got %q, want %q in it", progress.String(), want)
		}
	}
}

func TestLifetimes(t *testing.T) {
	for _, row := range []struct {
		name     string
		hobby    bool
		lifetime time.Duration
		want     time.Duration
		told     string
	}{
		{"none given", false, 0, 45 * time.Minute, ""},
		{"none given, on the smallest plan", true, 0, 45 * time.Minute, ""},
		{"the lifetime is bounded", false, 7 * 24 * time.Hour, 24 * time.Hour, ""},
		{"more than the plan allows", true, 4 * time.Hour, 45 * time.Minute, "the plan allows no lifetime of 4h0m0s"},
		{"fractions are kept", false, 1500 * time.Millisecond, 1500 * time.Millisecond, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := verceltest.New(t, verceltest.Config{Hobby: row.hobby})
			var progress told
			sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime, spec.Progress = row.lifetime, progress.hear })
			if got := s.Sandbox(sb.Info().ID)["timeout"]; got != row.want.Milliseconds() {
				t.Errorf("got %v ms, want %v", got, row.want)
			}
			if left := time.Until(sb.Info().Expires); left > row.want || left < row.want-time.Minute {
				t.Errorf("it expires in %v, want %v", left, row.want)
			}
			if !strings.Contains(progress.String(), row.told) || row.told == "" && strings.Contains(progress.String(), "plan") {
				t.Errorf("progress: got %q", progress.String())
			}
		})
	}
}

func TestExtend(t *testing.T) {
	s := verceltest.New(t, verceltest.Config{Hobby: true})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = 20 * time.Minute })
	first := sb.Info().Expires
	want := first.Add(10 * time.Minute)
	// An answer that is lost extends once all the same.
	s.Inject(verceltest.Fault{Op: "extend", Late: true})
	got, err := sandbox.Extend(t.Context(), sb, want)
	if err != nil || got.Before(want) || got.After(want.Add(time.Second)) || !sb.Info().Expires.Equal(got) {
		t.Errorf("got %v, %v and %v; want %v", got, err, sb.Info().Expires, want)
	}
	if n := len(s.Requests("extend")); n != 1 {
		t.Errorf("%d extensions, want 1", n)
	}
	if got, err := sandbox.Extend(t.Context(), sb, first); err != nil || got.Before(want) {
		t.Errorf("to an earlier time: got %v, %v", got, err)
	}
	_, err = sandbox.Extend(t.Context(), sb, first.Add(time.Hour))
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	s.Stop(sb.Info().ID)
	_, err = sandbox.Extend(t.Context(), sb, first.Add(time.Hour))
	emulate.WantCode(t, err, sandbox.CodeGone)
}

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := verceltest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := verceltest.New(t)
	base := map[string]string{"base_url": s.URL()}
	with := func(pairs ...string) map[string]string {
		settings := map[string]string{"base_url": s.URL()}
		for i := 0; i < len(pairs); i += 2 {
			settings[pairs[i]] = pairs[i+1]
		}
		return settings
	}
	expired := s.OIDC(time.Now().Add(-time.Hour))
	for _, row := range []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"nothing", base, "VERCEL_OIDC_TOKEN"},
		{"blank values", with("oidc_token", " ", "token", "\n"), "VERCEL_OIDC_TOKEN"},
		{"no project", with("token", "secret-token-1", "team_id", "team_test"), "project_id (VERCEL_PROJECT_ID) is missing"},
		{"no team and no project", with("token", "secret-token-1"), "team_id (VERCEL_TEAM_ID) and project_id (VERCEL_PROJECT_ID) is missing"},
		{"no token", with("team_id", "a", "project_id", "b"), "token (VERCEL_TOKEN) is missing"},
		{"not an OIDC token", with("oidc_token", "secret-token-1"), "is no OIDC token"},
		{"not JSON", with("oidc_token", "secret-token-1.e30.x"), "is no OIDC token"},
		{"expired", with("oidc_token", expired), "expired at"},
		{"expires soon", with("oidc_token", s.OIDC(time.Now().Add(4*time.Minute))), "too soon; run `vercel env pull`"},
		{"an expired one as access token", with("token", expired), "expired at"},
		{"expired, though there is an access token", with("oidc_token", expired, "token", s.Key(), "team_id", "team_test", "project_id", "prj_test"), "expired at"},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := sandbox.Spec{Settings: row.settings}
			_, err := vercel.Provider{}.Open(t.Context(), spec)
			for _, err := range []error{err, vercel.Provider{}.SignedIn(t.Context(), spec)} {
				emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
				if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret-token-1") {
					t.Errorf("got %v, want %q", err, row.want)
				}
			}
			if n := len(s.Requests("")); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}

	_, err := vercel.Provider{}.Open(t.Context(), sandbox.Spec{Settings: with("token", "wrong-token-123", "team_id", "team_test", "project_id", "prj_test")})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "wrong-token-123") {
		t.Errorf("the token is shown: %v", err)
	}
	settings := s.Settings()
	settings["team_id"] = "team_other"
	_, err = vercel.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	settings = s.Settings()
	settings["base_url"] = "http://example.com"
	_, err = vercel.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestOIDC(t *testing.T) {
	s := verceltest.New(t)
	for _, row := range []struct {
		name, key string
		lives     time.Duration
		told      string
	}{
		{"longer than the sandbox", "oidc_token", 12 * time.Hour, ""},
		{"shorter than the sandbox", "oidc_token", 30 * time.Minute, "before the sandbox; run `vercel env pull`"},
		{"as access token", "token", 12 * time.Hour, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var progress told
			settings := map[string]string{"base_url": s.URL(), row.key: s.OIDC(time.Now().Add(row.lives)), "team_id": "team_other", "project_id": "prj_other"}
			if err := (vercel.Provider{}).SignedIn(t.Context(), sandbox.Spec{Settings: settings}); err != nil {
				t.Fatal(err)
			}
			sb := open(t, s, func(spec *sandbox.Spec) { spec.Settings, spec.Progress = settings, progress.hear })
			if out, _, _ := emulate.Run(t, sb, "echo on"); out != "on\n" {
				t.Errorf("got %q", out)
			}
			if got := strings.Contains(progress.String(), "VERCEL_OIDC_TOKEN expires"); got != (row.told != "") || !strings.Contains(progress.String(), row.told) {
				t.Errorf("progress: got %q", progress.String())
			}
		})
	}
}

// A sandbox can be ended with a token that will not last.
func TestDestroyWithATokenThatEndsSoon(t *testing.T) {
	s := verceltest.New(t)
	id := open(t, s).Info().ID
	settings := map[string]string{"base_url": s.URL(), "oidc_token": s.OIDC(time.Now().Add(time.Minute))}
	if err := (vercel.Provider{}).Destroy(t.Context(), sandbox.Spec{Settings: settings, ID: id}); err != nil || len(s.Boxes()) != 0 {
		t.Errorf("got %v, %v", err, s.Boxes())
	}
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave verceltest.Behaviour
		fault  verceltest.Fault
		code   sandbox.Code
	}{
		{"failed", verceltest.Behaviour{EndIn: "failed"}, verceltest.Fault{}, sandbox.CodeUnavailable},
		{"aborted", verceltest.Behaviour{EndIn: "aborted"}, verceltest.Fault{}, sandbox.CodeUnavailable},
		{"stopped while starting", verceltest.Behaviour{EndIn: "stopped"}, verceltest.Fault{}, sandbox.CodeUnavailable},
		{"never ready", verceltest.Behaviour{NeverReady: true}, verceltest.Fault{}, sandbox.CodeTimeout},
		{"creation hangs", verceltest.Behaviour{}, verceltest.Fault{Op: "create", Hold: true}, sandbox.CodeTimeout},
		{"delete refused at first", verceltest.Behaviour{EndIn: "failed", BusyDeletes: 2}, verceltest.Fault{}, sandbox.CodeUnavailable},
		{"quota", verceltest.Behaviour{Quota: true}, verceltest.Fault{}, sandbox.CodeQuota},
		{"payment", verceltest.Behaviour{}, verceltest.Fault{Op: "create", Status: 402}, sandbox.CodeQuota},
		{"too many at once", verceltest.Behaviour{}, verceltest.Fault{Op: "create", Status: 429, Times: -1, Body: `{"error":{"code":"rate_limited","message":"The concurrency limit has been exceeded"}}`}, sandbox.CodeQuota},
		{"commands are forbidden", verceltest.Behaviour{}, verceltest.Fault{Op: "run", Status: 403}, sandbox.CodeUnauthenticated},
		{"no shell", verceltest.Behaviour{}, verceltest.Fault{Op: "run", Status: 400, Body: `{"error":{"code":"executable_not_found","message":"executable file not found in $PATH: sh"}}`}, sandbox.CodeInvalidArgument},
		{"no status", verceltest.Behaviour{NoExitCode: true}, verceltest.Fault{}, sandbox.CodeInternal},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := vercel.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 || s.Running() != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestOpenRefusesWhatCannotBe(t *testing.T) {
	s := verceltest.New(t)
	for name, spec := range map[string]sandbox.Spec{
		"snapshot and image": {Snapshot: "snap_1", Image: "debian:13"},
		"no image name":      {Image: "no image"},
		"too many labels":    {Labels: map[string]string{"a": "", "b": "", "c": "", "d": "", "e": ""}},
	} {
		spec.Settings = s.Settings()
		_, err := vercel.Provider{}.Open(t.Context(), spec)
		if sandbox.CodeOf(err) != sandbox.CodeInvalidArgument || len(s.Requests("")) != 0 {
			t.Errorf("%s: got %v after %d requests", name, err, len(s.Requests("")))
		}
	}
}

func TestImage(t *testing.T) {
	s := verceltest.New(t)
	s.Behave(verceltest.Behaviour{ImageNotReady: 2})
	var progress told
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Image, spec.Progress = "example/image:1", progress.hear })
	if got := s.Sandbox(sb.Info().ID)["asked"].(map[string]any)["image"]; got != "example/image:1" {
		t.Errorf("got %v", got)
	}
	if !strings.Contains(progress.String(), "image is being prepared") {
		t.Errorf("progress: got %q", progress.String())
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := verceltest.New(t, verceltest.Config{StartDelay: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := vercel.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	for name, fault := range map[string]verceltest.Fault{
		"1 answer lost":         {Late: true, Times: 1},
		"2 answers lost":        {Late: true, Times: 2},
		"all answers lost":      {Late: true, Times: -1},
		"in answers that break": {Cut: 35, Times: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t)
			fault.Op = "create"
			s.Inject(fault)
			sb := open(t, s, func(spec *sandbox.Spec) { spec.Name = "mine" })
			if got := s.Boxes(); len(got) != 1 || got[0] != sb.Info().ID {
				t.Errorf("got sandboxes %v, want %s alone", got, sb.Info().ID)
			}
		})
	}
}

func TestNameThatIsTaken(t *testing.T) {
	s := verceltest.New(t)
	s.Add("mine", true, nil)
	_, err := vercel.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Name: "mine"})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if err == nil || !strings.Contains(err.Error(), "the name mine is taken") || len(s.Boxes()) != 1 || len(s.Requests("delete")) != 0 {
		t.Errorf("got %v, sandboxes %v", err, s.Boxes())
	}
}

func TestAttach(t *testing.T) {
	for _, row := range []struct{ name, state string }{
		{"running", ""},
		{"by its session", ""},
		{"stopped", "stopped"},
		{"aborted", "aborted"},
		{"stopping", "stopping"},
		{"snapshotting", "snapshotting"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t, verceltest.Config{StartDelay: 100 * time.Millisecond})
			s.Add("theirs", true, map[string]string{"own": "1"})
			first := open(t, s, func(spec *sandbox.Spec) { spec.ID = "theirs" })
			emulate.Run(t, first, "echo kept >f")
			before := s.Sandbox("theirs")
			old := before["currentSessionId"]
			if row.state != "" {
				s.SetState("theirs", row.state)
			}
			if strings.HasSuffix(row.state, "ing") {
				time.AfterFunc(300*time.Millisecond, func() { s.Stop("theirs") })
			}
			id := "theirs"
			if row.name == "by its session" {
				id = fmt.Sprint(old)
			}
			var progress told
			sb := open(t, s, func(spec *sandbox.Spec) {
				spec.ID, spec.Lifetime, spec.Progress = id, time.Minute, progress.hear
				spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
			})
			if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" || sb.Info().ID != "theirs" {
				t.Errorf("got %q in %s", out, sb.Info().ID)
			}
			after := s.Sandbox("theirs")
			if after["timeout"] != before["timeout"] || fmt.Sprint(after["tags"]) != fmt.Sprint(before["tags"]) {
				t.Errorf("got %v and %v, want %v and %v as before", after["timeout"], after["tags"], before["timeout"], before["tags"])
			}
			if resumed := after["currentSessionId"] != old; resumed != (row.state != "") || resumed != strings.Contains(progress.String(), "resumed in a new session") {
				t.Errorf("resumed: %v, progress %q", resumed, progress.String())
			}
			if left := time.Until(sb.Info().Expires); left < 44*time.Minute || left > 45*time.Minute {
				t.Errorf("it expires in %v", left)
			}
			if err := sb.Close(); err != nil || s.Running() != 1 {
				t.Errorf("close: %v, %d running", err, s.Running())
			}
			for _, op := range []string{"delete", "stop", "extend", "update"} {
				if n := len(s.Requests(op)); n != 0 {
					t.Errorf("%d requests to %s", n, op)
				}
			}
		})
	}
}

func TestFailedAttachLeavesTheMachine(t *testing.T) {
	s := verceltest.New(t)
	id := open(t, s).Info().ID
	attach := func(id string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := vercel.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), ID: id})
		return err
	}
	for _, none := range []string{"nothing", "sbx_nothing"} {
		if err := attach(none); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("%s: got %v", none, err)
		}
	}
	s.Inject(verceltest.Fault{Op: "run", Status: 403})
	emulate.WantCode(t, attach(id), sandbox.CodeUnauthenticated)
	s.SetState(id, "pending")
	emulate.WantCode(t, attach(id), sandbox.CodeTimeout)
	s.SetState(id, "running")
	if got := s.Boxes(); len(got) != 1 || len(s.Requests("delete")) != 0 || len(s.Requests("create")) != 1 {
		t.Errorf("got sandboxes %v and %d deletes", got, len(s.Requests("delete")))
	}
	// What has stopped and kept nothing cannot be resumed.
	s.Stop(id)
	err := attach(id)
	emulate.WantCode(t, err, sandbox.CodeGone)
	if err == nil || !strings.Contains(err.Error(), "create a new one") || len(s.Requests("create")) != 1 {
		t.Errorf("got %v", err)
	}
	if err := (vercel.Provider{}).Destroy(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: id}); err != nil {
		t.Fatal(err)
	}
	emulate.WantCode(t, attach(id), sandbox.CodeNotFound)
}

func TestListAndDestroy(t *testing.T) {
	s := verceltest.New(t)
	mine := map[string]string{"app": "talkops", "run": "1"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func() []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), vercel.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: mine})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := list(); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].State != "running" || got[0].Created.IsZero() || got[0].Expires.IsZero() {
		t.Errorf("got %+v", got)
	}
	s.Behave(verceltest.Behaviour{BusyDeletes: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: s.Sandbox(sb.Info().ID)["currentSessionId"].(string)}
	if err := (vercel.Provider{}).Destroy(t.Context(), spec); err != nil || len(list()) != 0 {
		t.Errorf("by its session: %v, %v", err, list())
	}
	for _, id := range []string{spec.ID, sb.Info().ID, "never-was"} {
		spec.ID = id
		if err := (vercel.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Errorf("destroying what is gone: %v", err)
		}
	}

	other := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	s.Stop(other.Info().ID)
	if got := list(); len(got) != 0 {
		t.Errorf("what has stopped for good is listed: %+v", got)
	}
	s.Add("theirs", true, mine)
	s.Stop("theirs")
	if got := list(); len(got) != 1 || got[0].State != "stopped" || !got[0].Expires.IsZero() {
		t.Errorf("what can be resumed: got %+v", got)
	}
}

func TestListGoesThroughAllPages(t *testing.T) {
	s := verceltest.New(t)
	for i := range 45 {
		s.Add(fmt.Sprint("box-", i), false, map[string]string{"app": "talkops"})
	}
	s.Add("other", false, nil)
	found, err := sandbox.List(t.Context(), vercel.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"app": "talkops"}})
	if err != nil || len(found) != 45 || len(s.Requests("list")) != 3 {
		t.Errorf("got %d in %d pages, %v; want 45", len(found), len(s.Requests("list")), err)
	}
	all, err := sandbox.List(t.Context(), vercel.Provider{}, sandbox.Spec{Settings: s.Settings()})
	if err != nil || len(all) != 46 {
		t.Errorf("got %d, %v; want 46", len(all), err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := verceltest.New(t)
	for _, op := range []string{"create", "run", "start", "write"} {
		s.Inject(verceltest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After-Ms": "600"}, Body: `{"error":{"code":"rate_limited","message":"Too many requests"}}`})
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

func TestCommandNeverRunsTwice(t *testing.T) {
	for _, row := range []struct {
		name   string
		faults []verceltest.Fault
		code   sandbox.Code // of the error; empty is none
	}{
		{"answer lost", []verceltest.Fault{{Op: "start", Late: true}}, ""},
		{"answer lost, and it cannot be found", []verceltest.Fault{{Op: "start", Late: true}, {Op: "commands", Status: 503, Times: -1}}, sandbox.CodeUnavailable},
		{"refused", []verceltest.Fault{{Op: "start", Status: 500}}, sandbox.CodeUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t)
			sb := open(t, s)
			for _, f := range row.faults {
				s.Inject(f)
			}
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 2; exit 5"), Stdout: io.Discard})
			if row.code != "" {
				emulate.WantCode(t, err, row.code)
			} else if exit != 5 || err != nil {
				t.Errorf("got %d, %v", exit, err)
			}
			if n := len(s.Requests("start")); n != 1 {
				t.Errorf("%d starts", n)
			}
			s.Heal()
			if out, _, _ := emulate.Run(t, sb, "cat count 2>/dev/null"); len(out) > 2 {
				t.Errorf("the command ran %d times", len(out)/2)
			}
		})
	}
}

func TestScriptWhoseAnswerIsLostIsFound(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave verceltest.Behaviour
		fault  verceltest.Fault
	}{
		{"no answer", verceltest.Behaviour{}, verceltest.Fault{Op: "run", Late: true}},
		{"an empty answer", verceltest.Behaviour{EmptyStarts: 1}, verceltest.Fault{}},
		{"no last record", verceltest.Behaviour{ShortStreams: true}, verceltest.Fault{}},
		{"an error in the stream", verceltest.Behaviour{StreamErrors: 1}, verceltest.Fault{}},
		{"cut", verceltest.Behaviour{}, verceltest.Fault{Op: "run", Cut: 150}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := verceltest.New(t)
			sb := open(t, s)
			name := sb.Info().Dir + "/f"
			if err := sb.WriteFile(t.Context(), name, strings.NewReader("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			if err := sb.WriteFile(t.Context(), name, strings.NewReader("new"), 0o644); err != nil {
				t.Error(err)
			}
			var got bytes.Buffer
			if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != "new" {
				t.Errorf("got %q, %v", got.String(), err)
			}
		})
	}
}

func TestCommandIDIsUsedOnce(t *testing.T) {
	sb := open(t, verceltest.New(t))
	out := emulate.NewNotice()
	done := make(chan error, 1)
	go func() {
		exit, err := sb.Exec(t.Context(), sandbox.Cmd{ID: "the-one", Args: emulate.Sh("echo on; sleep 1; exit 4"), Stdout: out})
		if exit != 4 {
			err = errors.Join(err, fmt.Errorf("exit %d", exit))
		}
		done <- err
	}()
	<-out.First
	_, err := sb.Exec(t.Context(), sandbox.Cmd{ID: "the-one", Args: emulate.Sh("echo x >>count")})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
	if err := <-done; err != nil {
		t.Errorf("the first: %v", err)
	}
	if out, _, _ := emulate.Run(t, sb, "ls"); out != "" {
		t.Errorf("the second ran too: %q", out)
	}
}

func TestCommandIsFollowedOverBrokenConnections(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	for _, op := range []string{"logs", "command"} {
		s.Inject(verceltest.Fault{Op: op, Late: true})
		s.Inject(verceltest.Fault{Op: op, Status: 502})
		s.Inject(verceltest.Fault{Op: op, Status: 503})
	}
	var out, errOut bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo x >>count; sleep 0.3; cat count; echo e >&2; exit 5"), Stdout: &out, Stderr: &errOut})
	if exit != 5 || err != nil || out.String() != "x\n" || errOut.String() != "e\n" {
		t.Errorf("got %d, %v, %q, %q", exit, err, out.String(), errOut.String())
	}
}

func TestLongCommandsOutliveTheEdge(t *testing.T) {
	s := verceltest.New(t, verceltest.Config{EdgeCut: 200 * time.Millisecond})
	sb := open(t, s)
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done; exit 3"), Stdout: &out})
	if exit != 3 || err != nil || out.String() != "1\n2\n3\n4\n5\n6\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
	if n := len(s.Requests("logs")); n < 3 {
		t.Errorf("%d streams", n)
	}
}

func TestLogsThatVanishWithTheirCommand(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	s.Behave(verceltest.Behaviour{MissingLogs: true})
	s.Inject(verceltest.Fault{Op: "logs", Status: 503, Times: 2})
	var out bytes.Buffer
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; exit 3"), Stdout: &out, Stderr: io.Discard})
	if exit != 3 || err != nil || out.String() != "on\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(*verceltest.Server, string)
	}{
		{"vanished", (*verceltest.Server).Vanish},
		{"stopped", (*verceltest.Server).Stop},
		{"failed", func(s *verceltest.Server, id string) { s.SetState(id, "failed") }},
		{"stopping", func(s *verceltest.Server, id string) { s.SetState(id, "stopping") }},
		{"commands lost", (*verceltest.Server).LoseCommands},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := verceltest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; row.end(s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; echo $$ >pid; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			if row.name == "commands lost" {
				pid, _, _ := emulate.Run(t, sb, "cat pid")
				emulate.Ended(t, pid)
				return
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
			if n := len(s.Requests("create")); n != 1 {
				t.Errorf("%d creations", n)
			}
		})
	}
}

// A stopped sandbox is not resumed behind the caller's back.
func TestCommandsDoNotResume(t *testing.T) {
	s := verceltest.New(t)
	s.Add("theirs", true, nil)
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID = "theirs" })
	s.Stop("theirs")
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	if s.Running() != 0 {
		t.Error("it runs again")
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
	s := verceltest.New(t, verceltest.Config{Now: clock})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = time.Hour })
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
	emulate.WantCode(t, err, sandbox.CodeGone)
	if err == nil || !strings.Contains(err.Error(), "the sandbox is stopped") {
		t.Errorf("got %v, want Vercel's word for it", err)
	}
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestShellOfTheCommandMayDie(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`echo $$ >pid; kill -9 "$PPID"; sleep 300`), Stdout: io.Discard})
	emulate.WantCode(t, err, sandbox.CodeGone)
	pid, _, _ := emulate.Run(t, sb, "cat pid")
	emulate.Ended(t, pid)
}

func TestLostOutputIsAnError(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	var out bytes.Buffer
	_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`rm "${TMPDIR:-/tmp}"/.talkops-*/*.o; echo on`), Stdout: &out})
	emulate.WantCode(t, err, sandbox.CodeInternal)
}

func TestStatusOfAScriptMustBeKnown(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	s.Behave(verceltest.Behaviour{NoExitCode: true})
	emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeInternal)
}

func TestTokenThatExpiresInUse(t *testing.T) {
	for name, behave := range map[string]verceltest.Behaviour{"401": {ExpiredKey: true}, "403": {Forbidden: true}} {
		s := verceltest.New(t)
		sb := open(t, s)
		s.Behave(behave)
		_, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("true")})
		if sandbox.CodeOf(err) != sandbox.CodeUnauthenticated || len(s.Boxes()) != 1 {
			t.Errorf("%s: got %v, sandboxes %v", name, err, s.Boxes())
		}
	}
}

func TestViewsOfTheRequiredFieldsSuffice(t *testing.T) {
	s := verceltest.New(t)
	s.Behave(verceltest.Behaviour{BareViews: true})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = time.Hour })
	other := open(t, s, func(spec *sandbox.Spec) { spec.ID = sb.Info().ID })
	if left := time.Until(other.Info().Expires); left < 59*time.Minute || left > time.Hour || !other.Info().Expires.Equal(sb.Info().Expires) {
		t.Errorf("expires in %v", left)
	}
}

func TestUnpackAndPack(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	emulate.Run(t, sb, "mkdir -p a/b; echo x >a/b/f; ln -s f a/b/l; chmod 700 a/b/f")
	var archive bytes.Buffer
	if err := sandbox.Pack(t.Context(), sb, sb.Info().Dir, []string{"a"}, &archive); err != nil {
		t.Fatal(err)
	}
	before := len(s.Requests(""))
	if err := sandbox.Unpack(t.Context(), sb, sb.Info().Dir+"/copy", &archive); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Requests("")) - before; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if out, _, _ := emulate.Run(t, sb, "cd copy/a/b; cat f; readlink l; stat -c %a f"); out != "x\nf\n700\n" {
		t.Errorf("got %q", out)
	}
	err := sandbox.Unpack(t.Context(), sb, sb.Info().Dir+"/copy/a/b/f", strings.NewReader(""))
	if err == nil {
		t.Error("unpacking below a file succeeded")
	}
	if err := sandbox.Unpack(t.Context(), sb, sb.Info().Dir+"/broken", io.MultiReader(strings.NewReader("no archive"), emulate.Failing{})); !errors.Is(err, emulate.ErrSource) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestSnapshot(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault verceltest.Fault
	}{
		{"", verceltest.Fault{}},
		{"answer lost", verceltest.Fault{Op: "snapshot", Late: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := verceltest.New(t, verceltest.Config{StopDelay: 50 * time.Millisecond})
			sb := open(t, s, func(spec *sandbox.Spec) { spec.Name = "base" })
			emulate.WantCode(t, sandbox.Snapshot(t.Context(), sb, "other"), sandbox.CodeInvalidArgument)
			if n := len(s.Requests("snapshot")); n != 0 {
				t.Errorf("%d snapshots", n)
			}
			for _, text := range []string{"first", "second"} {
				emulate.Run(t, sb, "echo "+text+" >f")
				time.Sleep(2 * time.Millisecond) // Vercel's clock has milliseconds
				if row.fault.Op != "" {
					s.Inject(row.fault)
				}
				if err := sandbox.Snapshot(t.Context(), sb, "base"); err != nil {
					t.Fatal(err)
				}
				// It goes on in a new session.
				if out, _, _ := emulate.Run(t, sb, "cat f"); out != text+"\n" {
					t.Errorf("after the snapshot: got %q", out)
				}
			}
			if n := len(s.Requests("snapshot")); n != 2 {
				t.Errorf("%d snapshots, want 2", n)
			}
			if err := (vercel.Provider{}).Destroy(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: "base"}); err != nil {
				t.Fatal(err)
			}
			next := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = "base" })
			if out, _, _ := emulate.Run(t, next, "cat f"); out != "second\n" {
				t.Errorf("got %q, want what the newest snapshot holds", out)
			}
			id := s.Sandbox(next.Info().ID)["session"].(map[string]any)["sourceSnapshotId"].(string)
			again := open(t, s, func(spec *sandbox.Spec) { spec.Snapshot = id })
			if out, _, _ := emulate.Run(t, again, "cat f"); out != "second\n" {
				t.Errorf("by its id: got %q", out)
			}
			for _, none := range []string{"none", "snap_none"} {
				_, err := vercel.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: none})
				emulate.WantCode(t, err, sandbox.CodeNotFound)
			}
		})
	}
}

func TestSnapshotAfterWhichNothingIsResumed(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Name = "base" })
	s.Behave(verceltest.Behaviour{NoResume: true})
	err := sandbox.Snapshot(t.Context(), sb, "base")
	emulate.WantCode(t, err, sandbox.CodeGone)
	if err == nil || !strings.Contains(err.Error(), "it was taken as snap_") {
		t.Errorf("got %v, want the snapshot's id", err)
	}
}

func TestAnswerThatIsNoFile(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(verceltest.Fault{Op: "read", Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"error":{"message":"an error with the wrong status"}}`})
	var got bytes.Buffer
	emulate.WantCode(t, sb.ReadFile(t.Context(), name, &got), sandbox.CodeInternal)
	if got.Len() != 0 {
		t.Errorf("got %q as content", got.String())
	}
}

func TestLargeFileIsStreamed(t *testing.T) {
	s := verceltest.New(t)
	sb := open(t, s)
	const size = 100 << 20
	name := sb.Info().Dir + "/large"
	s.Inject(verceltest.Fault{Op: "write", Status: 503, Skip: 3})
	if err := sb.WriteFile(t.Context(), name, io.LimitReader(zeros{}, size), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(verceltest.Fault{Op: "read", Cut: 60 << 20})
	var n emulate.Counter
	if err := sb.ReadFile(t.Context(), name, &n); err != nil || n != size {
		t.Errorf("got %d bytes, %v; want %d", n, err, size)
	}
	if out, _, _ := emulate.Run(t, sb, `ls -A "${TMPDIR:-/tmp}"/.talkops-*/*.u* 2>/dev/null`); out != "" {
		t.Errorf("pieces are left: %s", out)
	}
}

func TestLargeInput(t *testing.T) {
	sb := open(t, verceltest.New(t))
	const size = 20 << 20
	var n emulate.Counter
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: []string{"cat"}, Stdin: io.LimitReader(zeros{}, size), Stdout: &n})
	if exit != 0 || err != nil || n != size {
		t.Errorf("got %d, %v, %d bytes; want %d", exit, err, n, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A command may delete what it finds in the temporary directory.
func TestDeletedPrivateDirectory(t *testing.T) {
	s := verceltest.New(t)
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
