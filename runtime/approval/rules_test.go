package approval

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// What a rule allows is the program of the system, or the file, that it names; what
// it denies is everything that is called so.
func TestWhatARuleReaches(t *testing.T) {
	links := map[string]string{"/src/docs/out": "/home/user/.bashrc", "/src/docs/in": "/src/docs/a", "/data/docs/x": "/mnt/docs/x", "/data/docs": "/mnt/docs", "/src/far": "/opt/far", "/src/build/far/x": "/opt/x", "/src/.venv/bin/py": "/usr/bin/py"}
	at := Context{Place: Place{Provider: "local", Host: true}, Dir: "/src", Workspace: "/src", Home: "/home/user", Real: func(name string) string {
		if to, ok := links[name]; ok {
			return to
		}
		return name
	}}
	run := func(line string) Request {
		return Request{Tool: "execute", Place: at.Place, Plan: tool.Plan{Effect: tool.Runs, Command: line, Path: "/src"}}
	}
	in := func(dir, line string) Request {
		req := run(line)
		req.Plan.Path = dir
		return req
	}
	write := func(name string) Request {
		return Request{Tool: "write_file", Place: at.Place, Plan: tool.Plan{Effect: tool.Writes, Path: name}}
	}
	for _, row := range []struct {
		rule  string
		req   Request
		allow bool
	}{
		{"make test", run("make test"), true},
		{"make test", run("/usr/bin/make test"), true},
		{"make test", run("./make test"), false},
		{"make test", run("/tmp/make test"), false},
		{"make test", run("/usr/bin/../../tmp/make test"), false},
		{"make *", run("bin/make all"), false},
		{"rm docs/a", run("rm docs/a"), true},
		{"rm docs/in", run("rm docs/in"), true},
		{"rm docs/out", run("rm docs/out"), false},
		{"rm -f=docs/out", run("rm -f=docs/out"), false},
		{"make test", in("/src/docs", "make test"), true},
		{"make test", in("/opt/far", "make test"), false},
		{"make test", in("/src/far", "make test"), false},
		{"terra* plan", run("terraform plan"), true},
		{"terra* plan", run("terra/form plan"), false},
		{"./scripts/* -n", run("./scripts/check.sh -n"), true},
		{"./scripts/* -n", run("./scripts/../../tmp/x -n"), false},
		{"curl https://example.com*", run("curl https://example.com"), true},
		{"curl https://example.com*", run("curl https://example.com/a?b"), true},
		{"curl https://example.com*", run("curl https://example.com:8443/a"), true},
		{"curl https://example.com*", run("curl 'https://example.com?a'"), true},
		{"curl https://example.com*", run("curl https://example.com.evil.example/"), false},
		{"curl https://example.com*", run("curl https://example.community"), false},
		{"curl https://example.com*", run("curl https://example.com@evil.example/"), false},
		{"curl https://example.com*", run("curl https://example.com:pw@evil.example/"), false},
		{"curl https://example.com*", run(`curl 'https://example.com\@evil.example/'`), false},
		{"curl https://example.com*", run("curl 'https://example.com{.evil.example,}/'"), false},
		{"curl https://example.com*/health", run("curl https://example.com.evil.example/health"), false},
		{"curl https://*.example.com/*", run("curl https://a.example.com/x"), true},
		{"curl https://*.example.com/*", run("curl https://evil.example/.example.com/"), false},
		{"curl https://*.example.com/*", run("curl 'https://evil.example#.example.com/'"), false},
		{"curl https://example.com/*", run("curl https://example.com/a/b"), true},
		{"curl --url=https://example.com*", run("curl --url=https://example.com.evil.example"), false},
		{"curl example.com*", run("curl example.com/x"), true},
		{"curl example.com*", run("curl example.com.evil.example"), false},
		{"curl -fsS *", run("curl -fsS https://example.com/x"), true},
		{"rm build/*", run("rm build/x.o"), true},
		{"rm build/*", run("rm build/../main.tf"), false},
		{"rm *", run("rm build/../main.tf"), true},
		{"rm build/*", run("rm build/far/x"), false},
		{"rm build/*", in("/src/sub", "rm build/x.o"), true},
		{"rm build/*", run("cd sub && rm build/x.o"), false},
		{"rm /src/build/*", run("cd sub && rm /src/build/x.o"), true},
		{"rm /src/build/*", run("rm /src/build/far/x"), false},
		{"tool --in=build/*", run("tool --in=build/x.o"), true},
		{"tool --in=build/*", run("tool --in=build/far/x"), false},
		{".venv/bin/* -q", run(".venv/bin/py -q"), true},
		{"write_file: docs/*", write("/src/docs/.envrc"), true},
		{"write_file: docs/*", write("/src/docs/in"), true},
		{"write_file: docs/*", write("/src/docs/out"), false},
		{"write_file: docs/*", write("/src/docs/../.envrc"), false},
		{"write_file: /data/docs/*", write("/data/docs/x"), true},
		{"write_file: /data/docs/*", write("/data/other"), false},
	} {
		rules, err := ParseRules([]string{row.rule}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Policy{Mode: Smart, Context: at, Rules: rules}.Approve(t.Context(), row.req)
		if err != nil || d.Allow != row.allow {
			t.Errorf("--allow %q: %q %q is allowed: %v (%+v)", row.rule, row.req.Plan.Command, row.req.Plan.Path, d.Allow, d)
		}
	}
	box := at
	box.Place = Place{Provider: "daytona", Disposable: true}
	rules, err := ParseRules([]string{"terraform apply *"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := run("/opt/tools/terraform apply plan.bin")
	req.Place = box.Place
	if d, _ := (Policy{Mode: Smart, Context: box, Rules: rules}).Approve(t.Context(), req); !d.Allow {
		t.Errorf("a program elsewhere in a sandbox, where the model can replace any: %+v", d)
	}
	for _, line := range []string{"make test", "./make test", "/tmp/make test", "env make test", "build/../make test"} {
		rules, err := ParseRules([]string{"./make test", "make test", "env make test"}, nil, []string{"make *"})
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := (Policy{Mode: Yolo, Context: at, Rules: rules}).Approve(t.Context(), run(line)); d.Allow || d.Kind != ByPolicy {
			t.Errorf("--deny 'make *': %q is %+v", line, d)
		}
	}
}

// A rule of one project says nothing in another.
func TestARuleOfOneProject(t *testing.T) {
	text, ok := RuleIn("/src/shop", "make test", true)
	if !ok {
		t.Fatal("no rule for a plain directory")
	}
	for _, bad := range []string{"src", "/a,b", "/a*", "/a:b", "/a'b"} {
		if _, ok := RuleIn(bad, "make test", true); ok {
			t.Errorf("%q is taken for the directory of a rule", bad)
		}
	}
	for _, row := range []struct {
		rule, project string
		allow         bool
	}{{text, "/src/shop", true}, {text, "/src/shop/", true}, {text, "/src/other", false}, {text, "/src/shop/sub", false}, {text, "", false}, {"make test", "/src/other", true}, {"in /src/shop: write_file: docs/*", "/src/shop", false}} {
		rules, err := ParseRules([]string{row.rule}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := Context{Place: Place{Host: true}, Dir: "/src/shop", Workspace: "/src/shop", Project: row.project}
		d, err := Policy{Mode: Smart, Context: c, Rules: rules}.Approve(t.Context(), Request{Tool: "execute", Place: c.Place, Plan: tool.Plan{Effect: tool.Runs, Command: "make test", Path: "/src/shop"}})
		if err != nil || d.Allow != row.allow {
			t.Errorf("%q in %q: %+v", row.rule, row.project, d)
		}
	}
	for _, row := range []struct {
		rule, project string
		denied        bool
	}{{text, "/src/shop", true}, {text, "/src/shop/sub", true}, {"in /link: make *", "/src/shop", true}, {text, "/src/shopping", false}, {text, "/src", false}} {
		rules, err := ParseRules(nil, nil, []string{row.rule})
		if err != nil {
			t.Fatal(err)
		}
		c := Context{Place: Place{Host: true}, Dir: row.project, Workspace: row.project, Project: row.project, Real: func(name string) string {
			if name == "/link" {
				return "/src/shop"
			}
			return name
		}}
		d, err := Policy{Mode: Yolo, Context: c, Rules: rules}.Approve(t.Context(), Request{Tool: "execute", Place: c.Place, Plan: tool.Plan{Effect: tool.Runs, Command: "make test", Path: row.project}})
		if err != nil || d.Allow == row.denied {
			t.Errorf("--deny %q in %q: %+v", row.rule, row.project, d)
		}
	}
	// What was always allowed in a sandbox is not allowed on the user's computer.
	boxed, _ := RuleIn("/src/shop", "make test", false)
	for _, row := range []struct {
		host  bool
		rules Rules
		allow bool
	}{{host: true, rules: mustRules(t, boxed, ""), allow: false}, {host: false, rules: mustRules(t, boxed, ""), allow: true}, {host: true, rules: mustRules(t, "make test", boxed), allow: false}} {
		c := Context{Place: Place{Host: row.host}, Dir: "/src/shop", Workspace: "/src/shop", Project: "/src/shop"}
		d, err := Policy{Mode: Manual, Context: c, Rules: row.rules}.Approve(t.Context(), Request{Tool: "execute", Place: c.Place, Plan: tool.Plan{Effect: tool.Runs, Command: "make test", Path: "/src/shop"}})
		if err != nil || d.Allow != row.allow {
			t.Errorf("%q on the host %v: %+v", boxed, row.host, d)
		}
	}
	if _, err := ParseRule("in /src/shop: *"); err == nil {
		t.Error("a rule of a project that allows nothing is taken")
	}
}

func mustRules(t *testing.T, allow, deny string) Rules {
	t.Helper()
	var denied []string
	if deny != "" {
		denied = []string{deny}
	}
	rules, err := ParseRules([]string{allow}, nil, denied)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}
