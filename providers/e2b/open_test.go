//go:build unix

package e2b_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/providers/e2b"
	"github.com/talkops-ai/talkops/providers/e2b/e2btest"
	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func TestOpenMakesTheWantedDirectory(t *testing.T) {
	s := e2btest.New(t)
	first := open(t, s)
	want := first.Info().Dir + "/some/where"
	sb := open(t, s, func(spec *sandbox.Spec) { spec.ID, spec.Dir = first.Info().ID, want })
	if got := sb.Info().Dir; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSignIn(t *testing.T) {
	s := e2btest.New(t)
	settings := s.Settings()
	delete(settings, "api_key")
	_, err := e2b.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if n := len(s.Requests("")); n != 0 {
		t.Errorf("%d requests without a key", n)
	}

	settings["api_key"] = "wrong-key-123"
	_, err = e2b.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	if strings.Contains(err.Error(), "wrong-key-123") {
		t.Errorf("the key is shown: %v", err)
	}

	settings["api_url"] = "http://example.com/api"
	_, err = e2b.Provider{}.Open(t.Context(), sandbox.Spec{Settings: settings})
	emulate.WantCode(t, err, sandbox.CodeInvalidArgument)
}

func TestExpiredKey(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	s.Behave(e2btest.Behaviour{ExpiredKey: true})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	_, err := e2b.Provider{}.Open(t.Context(), spec)
	emulate.WantCode(t, err, sandbox.CodeUnauthenticated)
	emulate.WantCode(t, e2b.Provider{}.Destroy(t.Context(), spec), sandbox.CodeUnauthenticated)
}

func TestUnpackAndPack(t *testing.T) {
	s := e2btest.New(t)
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
	s := e2btest.New(t)
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
	_, err := e2b.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), Snapshot: "none"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
}

func TestAnswerThatIsNoFile(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Inject(e2btest.Fault{Op: "download", Status: 200, Body: `{"message":"an error with the wrong status"}`})
	var got bytes.Buffer
	emulate.WantCode(t, sb.ReadFile(t.Context(), name, &got), sandbox.CodeInternal)
	if got.Len() != 0 {
		t.Errorf("got %q as content", got.String())
	}
}

func TestOpenSaysWhatItWants(t *testing.T) {
	s := e2btest.New(t)
	var created sandbox.Info
	sb := open(t, s, func(spec *sandbox.Spec) {
		spec.Name = "mine"
		spec.Labels = map[string]string{"app": "talkops"}
		spec.Lifetime = 90 * time.Minute
		spec.Created = func(info sandbox.Info) {
			created = info
			if n := len(s.Requests("Start")); n != 0 {
				t.Error("the machine was used before its id was known")
			}
		}
	})
	info := sb.Info()
	if created.ID == "" || created.ID != info.ID || info.Provider != "e2b" {
		t.Errorf("created %+v, open %+v", created, info)
	}
	if left := time.Until(info.Expires); left < 80*time.Minute || left > 90*time.Minute {
		t.Errorf("it ends in %v", left)
	}
	if out, _, _ := emulate.Run(t, sb, "pwd -P"); out != info.Dir+"\n" {
		t.Errorf("working directory: got %q, want %q", out, info.Dir)
	}
	found, err := sandbox.List(t.Context(), e2b.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"app": "talkops"}})
	if err != nil || len(found) != 1 || found[0].Name != "mine" || found[0].State != "running" || found[0].Expires.IsZero() {
		t.Errorf("listed %+v, %v", found, err)
	}
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, row := range []struct {
		name   string
		behave e2btest.Behaviour
		fault  e2btest.Fault
		code   sandbox.Code
	}{
		{"no access token", e2btest.Behaviour{NoToken: true}, e2btest.Fault{}, sandbox.CodeInternal},
		{"creation hangs", e2btest.Behaviour{}, e2btest.Fault{Op: "create", Hold: true}, sandbox.CodeTimeout},
		{"no capacity", e2btest.Behaviour{}, e2btest.Fault{Op: "create", Times: -1, Status: 503, Body: `{"code":503,"message":"no room","error_code":"sandbox_capacity_unavailable"}`}, sandbox.CodeUnavailable},
		{"deletion refused at first", e2btest.Behaviour{NoToken: true, BusyDeletes: 2}, e2btest.Fault{}, sandbox.CodeInternal},
		{"quota", e2btest.Behaviour{}, e2btest.Fault{Op: "create", Times: -1, Status: 429, Body: `{"code":429,"message":"you have reached the maximum number of concurrent E2B sandboxes (20)"}`}, sandbox.CodeQuota},
		{"daemon does not answer", e2btest.Behaviour{}, e2btest.Fault{Op: "Start", Times: -1, Hang: true}, sandbox.CodeTimeout},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(t)
			s.Behave(row.behave)
			if row.fault.Op != "" {
				s.Inject(row.fault)
			}
			within := 30 * time.Second
			if row.code == sandbox.CodeTimeout {
				within = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := e2b.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings()})
			emulate.WantCode(t, err, row.code)
			if left := s.Boxes(); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestCancelDuringCreationLeavesNothing(t *testing.T) {
	s := e2btest.New(t)
	s.Inject(e2btest.Fault{Op: "Start", Times: -1, Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := e2b.Provider{}.Open(ctx, sandbox.Spec{Settings: s.Settings(), Created: func(sandbox.Info) { cancel() }})
	emulate.WantCode(t, err, sandbox.CodeCancelled)
	if left := s.Boxes(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestLostCreationIsFoundAgain(t *testing.T) {
	s := e2btest.New(t)
	s.Inject(e2btest.Fault{Op: "create", Late: true})
	sb := open(t, s)
	if got := s.Boxes(); len(got) != 1 || got[0] != sb.Info().ID {
		t.Errorf("got sandboxes %v, want one", got)
	}
	if n := len(s.Requests("create")); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
}

// Older servers know the older calls alone; older daemons must be told the user and
// take files as forms.
func TestOlderServers(t *testing.T) {
	s := e2btest.New(t)
	s.Behave(e2btest.Behaviour{NoV2: true, Version: "0.3.9"})
	s.Inject(e2btest.Fault{Op: "list", Status: 404, Times: -1}) // nobody needs it
	sb := open(t, s)
	name := sb.Info().Dir + "/f"
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("\xff\x00 content"), 0o644); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != "\xff\x00 content" {
		t.Errorf("got %q, %v", got.String(), err)
	}
	if r := s.Requests("create"); len(r) != 2 || r[0].Status != 405 || !strings.Contains(r[1].Body, `"secure":true`) {
		t.Errorf("creation: %+v", r)
	}
	for _, op := range []string{"Start", "upload", "download"} {
		for _, r := range s.Requests(op) {
			if r.Header.Get("Authorization") == "" || op != "Start" && !strings.Contains(r.Path, "username=user") {
				t.Errorf("%s %s was sent for no user", op, r.Path)
			}
		}
	}
	for _, r := range s.Requests("upload") {
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
			t.Errorf("uploaded as %s", r.Header.Get("Content-Type"))
		}
	}
}

// An account that may not have a sandbox for as long as is wanted gets one for as
// long as it may, and that is told.
func TestLifetimeAboveWhatTheAccountMayHave(t *testing.T) {
	s := e2btest.New(t)
	s.Behave(e2btest.Behaviour{MostHours: 1})
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = 4 * time.Hour })
	if left := time.Until(sb.Info().Expires); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it ends in %v", left)
	}
	until, err := sandbox.Extend(t.Context(), sb, time.Now().Add(3*time.Hour))
	if left := time.Until(until); err != nil || left > time.Hour+time.Minute || left < 50*time.Minute {
		t.Errorf("extended by %v, %v", left, err)
	}
}

func TestExtendNeverShortens(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = 2 * time.Hour })
	for _, row := range []struct{ want, atLeast time.Duration }{{time.Minute, 110 * time.Minute}, {5 * time.Hour, 290 * time.Minute}} {
		until, err := sandbox.Extend(t.Context(), sb, time.Now().Add(row.want))
		if left := time.Until(until); err != nil || left < row.atLeast {
			t.Errorf("asked for %v: it ends in %v, %v", row.want, left, err)
		}
	}
	if n := len(s.Requests("timeout")); n != 1 {
		t.Errorf("the end was moved %d times", n)
	}
}

func TestAttach(t *testing.T) {
	s := e2btest.New(t)
	first := open(t, s, func(spec *sandbox.Spec) { spec.Lifetime = 2 * time.Hour })
	id := first.Info().ID
	emulate.Run(t, first, "echo kept >f")
	before := s.Sandbox(id)["endAt"]
	again := func(spec *sandbox.Spec) {
		spec.ID, spec.Lifetime = id, time.Minute
		spec.Created = func(sandbox.Info) { t.Error("Created was called on attaching") }
	}
	sb := open(t, s, again)
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	if n := len(s.Requests("connect")); n != 0 || s.Sandbox(id)["endAt"] != before {
		t.Errorf("%d calls resumed what ran; it ends at %v, before %v", n, s.Sandbox(id)["endAt"], before)
	}
	pause(t, s, id)
	emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
	sb = open(t, s, again)
	if out, _, _ := emulate.Run(t, sb, "cat f"); out != "kept\n" {
		t.Errorf("after a pause: got %q", out)
	}
	if err := sb.Close(); err != nil || len(s.Boxes()) != 1 {
		t.Errorf("close: %v, %v", err, s.Boxes())
	}
	_, err := e2b.Provider{}.Open(t.Context(), sandbox.Spec{Settings: s.Settings(), ID: "nothing"})
	emulate.WantCode(t, err, sandbox.CodeNotFound)
	if !errors.Is(err, sandbox.ErrNotFound) || len(s.Boxes()) != 1 {
		t.Errorf("got %v and %v", err, s.Boxes())
	}
}

// pause pauses a sandbox as somebody else does.
func pause(t *testing.T, s *e2btest.Server, id string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/sandboxes/"+id+"/pause", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", s.Key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 204 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

func TestListAndDestroy(t *testing.T) {
	s := e2btest.New(t)
	mine := map[string]string{"app": "talkops", "run": "1 of=2&3"}
	sb := open(t, s, func(spec *sandbox.Spec) { spec.Labels = mine })
	open(t, s, func(spec *sandbox.Spec) { spec.Labels = map[string]string{"app": "talkops", "run": "2"} })
	list := func(labels map[string]string) []sandbox.Listed {
		t.Helper()
		found, err := sandbox.List(t.Context(), e2b.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	pause(t, s, sb.Info().ID)
	if got := list(mine); len(got) != 1 || got[0].ID != sb.Info().ID || got[0].State != "paused" || got[0].Created.IsZero() {
		t.Errorf("got %+v", got)
	}
	if got := list(nil); len(got) != 2 {
		t.Errorf("all: got %+v", got)
	}
	s.Behave(e2btest.Behaviour{BusyDeletes: 1})
	spec := sandbox.Spec{Settings: s.Settings(), ID: sb.Info().ID}
	for range 2 {
		if err := (e2b.Provider{}).Destroy(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(mine); len(got) != 0 {
		t.Errorf("after destroy: got %+v", got)
	}
	spec.ID = "never-was"
	if err := (e2b.Provider{}).Destroy(t.Context(), spec); err != nil {
		t.Errorf("destroying nothing: %v", err)
	}
}

// What the server says is on a second page is found there.
func TestLongList(t *testing.T) {
	s := e2btest.New(t)
	for range 101 {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/v2/sandboxes", strings.NewReader(`{"templateID":"base","timeout":600,"metadata":{"app":"talkops"}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-KEY", s.Key())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	found, err := sandbox.List(t.Context(), e2b.Provider{}, sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"app": "talkops"}})
	if err != nil || len(found) != 101 || len(s.Requests("list")) != 2 {
		t.Errorf("got %d in %d pages, %v", len(found), len(s.Requests("list")), err)
	}
}

func TestThrottledCallsAreRepeated(t *testing.T) {
	s := e2btest.New(t)
	for _, op := range []string{"create", "get", "Start"} {
		s.Inject(e2btest.Fault{Op: op, Status: 429, Header: map[string]string{"Retry-After": "1"}, Body: `{"code":429,"message":"Rate limit exceeded"}`})
	}
	begin := time.Now()
	open(t, s)
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("took %v, want the three seconds asked for", took)
	}
}

// A stream that breaks is taken up where it was, and the command runs once.
func TestCommandIsFollowedAfterALostAnswer(t *testing.T) {
	for name, fault := range map[string]e2btest.Fault{
		"answer lost":       {Op: "Start", Late: true},
		"first byte":        {Op: "Start", Cut: 1},
		"after a while":     {Op: "Start", Cut: 900},
		"answer never came": {Op: "Start", Hold: true},
		"web page":          {Op: "Start", Status: 200, Body: "<html>"},
		"service down":      {Op: "Start", Status: 502, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(t)
			sb := open(t, s)
			s.Inject(fault)
			var out, stderr bytes.Buffer
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{
				Args:   emulate.Sh(`echo x >>count; for i in $(seq 300); do echo "line $i"; echo "e $i" >&2; done; sleep 0.3; cat count; exit 5`),
				Stdout: &out, Stderr: &stderr,
			})
			want, wantErr := "", ""
			for i := range 300 {
				want += fmt.Sprintf("line %d\n", i+1)
				wantErr += fmt.Sprintf("e %d\n", i+1)
			}
			if exit != 5 || err != nil || out.String() != want+"x\n" || stderr.String() != wantErr {
				t.Errorf("got %d, %v, %d bytes and %d, which end with %q", exit, err, out.Len(), stderr.Len(), out.String()[max(0, out.Len()-20):])
			}
		})
	}
}

// Cut again and again while it writes, a command is still whole.
func TestCutsWhileACommandWrites(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	out := emulate.NewNotice()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		<-out.First
		for range 3 {
			s.Cut(sb.Info().ID)
			select {
			case <-stop:
				return
			case <-time.After(400 * time.Millisecond):
			}
		}
	}()
	exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh(`echo x >>count; i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo $i; sleep 0.02; done; cat count`), Stdout: out})
	want := ""
	for i := range 100 {
		want += fmt.Sprintf("%d\n", i+1)
	}
	if exit != 0 || err != nil || out.String() != want+"x\n" {
		t.Errorf("got %d, %v, %q", exit, err, out.String())
	}
	if n := len(s.Requests("Start")); n < 4 {
		t.Errorf("there were only %d streams", n)
	}
}

func TestNewAccessTokenIsAskedForOnce(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	s.NewToken(sb.Info().ID)
	if out, _, _ := emulate.Run(t, sb, "echo on"); out != "on\n" {
		t.Errorf("got %q", out)
	}
	// What was sent of a file is gone: the next attempt has the token.
	s.NewToken(sb.Info().ID)
	name := sb.Info().Dir + "/f"
	emulate.WantCode(t, sb.WriteFile(t.Context(), name, strings.NewReader("x"), 0o644), sandbox.CodeUnavailable)
	if err := sb.WriteFile(t.Context(), name, strings.NewReader("x"), 0o644); err != nil {
		t.Error(err)
	}
	s.NewToken(sb.Info().ID)
	var got bytes.Buffer
	if err := sb.ReadFile(t.Context(), name, &got); err != nil || got.String() != "x" {
		t.Errorf("got %q, %v", got.String(), err)
	}
}

func TestEndOfTheMachineIsGone(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *e2btest.Server, string){
		"vanished": func(_ *testing.T, s *e2btest.Server, id string) { s.Vanish(id) },
		"paused":   func(t *testing.T, s *e2btest.Server, id string) { pause(t, s, id); s.Cut(id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(t)
			sb := open(t, s)
			out := emulate.NewNotice()
			go func() { <-out.First; end(t, s, sb.Info().ID) }()
			exit, err := sb.Exec(t.Context(), sandbox.Cmd{Args: emulate.Sh("echo on; sleep 300"), Stdout: out})
			emulate.WantCode(t, err, sandbox.CodeGone)
			if exit != 0 || out.String() != "on\n" {
				t.Errorf("got %d, %q", exit, out.String())
			}
			emulate.WantCode(t, sb.WriteFile(t.Context(), sb.Info().Dir+"/f", strings.NewReader("x"), 0o644), sandbox.CodeGone)
			emulate.WantCode(t, sb.ReadFile(t.Context(), sb.Info().Dir+"/f", &bytes.Buffer{}), sandbox.CodeGone)
		})
	}
}

// What another kept a sandbox open with is enough to go on, without a request.
func TestResume(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	info := sb.Info()
	before := len(s.Requests(""))
	spec := sandbox.Spec{Settings: s.Settings(), ID: info.ID, Token: info.Token, Dir: info.Dir, Env: map[string]string{"A": "b"}}
	again, err := e2b.Provider{}.Resume(t.Context(), spec)
	if err != nil || len(s.Requests("")) != before {
		t.Fatalf("%v, %d requests", err, len(s.Requests(""))-before)
	}
	if out, _, _ := emulate.Run(t, again, "pwd; echo $A"); out != info.Dir+"\nb\n" {
		t.Errorf("got %q", out)
	}
	for _, token := range []string{"", "{", `{"tools":{"base":"http://example.com","access":"x"},"run":"/tmp"}`} {
		spec.Token = token
		if again, err = (e2b.Provider{}).Resume(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if out, _, _ := emulate.Run(t, again, "echo on"); out != "on\n" {
			t.Errorf("with the token %q: got %q", token, out)
		}
	}
}

// A short command is one request.
func TestShortCommandIsOneRequest(t *testing.T) {
	s := e2btest.New(t)
	sb := open(t, s)
	before := len(s.Requests(""))
	emulate.Run(t, sb, "echo out; echo err >&2")
	if n := len(s.Requests("")) - before; n != 1 {
		t.Errorf("there were %d requests", n)
	}
}
