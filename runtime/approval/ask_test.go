package approval_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
	"github.com/talkops-ai/talkops/runtime/tool"
)

func TestAskingAPerson(t *testing.T) {
	run := func(line string) approval.Request {
		return approval.Request{Tool: "execute", Place: onHost.Place, Plan: tool.Plan{Effect: tool.Runs, Command: line, Path: onHost.Dir}}
	}
	var asked []approval.Question
	var rules []string
	var answer approval.Answer
	a := &approval.Attended{
		Policy: func() approval.Policy { return approval.Policy{Mode: approval.Smart, Context: onHost} },
		Ask: func(_ context.Context, q approval.Question) (approval.Answer, error) {
			asked = append(asked, q)
			return answer, nil
		},
		Remember: func(rule string) error { rules = append(rules, rule); return nil },
	}
	for _, row := range []struct {
		name, line string
		answer     approval.Answer
		allow      bool
		kind       approval.Kind
		asks       int
		offers     []approval.Choice
		command    string
	}{
		{"looking is not asked", "ls", approval.Answer{}, true, "", 0, nil, ""},
		{"once", "make test", approval.Answer{Choice: approval.Once}, true, "", 1, []approval.Choice{approval.Once, approval.Session, approval.Always, approval.Refuse}, ""},
		{"asked again after once", "make test", approval.Answer{Choice: approval.Session}, true, "", 1, nil, ""},
		{"not asked again in the session", "make test", approval.Answer{Choice: approval.Refuse}, true, "", 0, nil, ""},
		{"something else is", "make all", approval.Answer{Choice: approval.Refuse, Reason: "not now"}, false, approval.ByPerson, 1, nil, ""},
		{"always", "make lint", approval.Answer{Choice: approval.Always}, true, "", 1, nil, ""},
		{"what would be read back as a rule for a tool", "write_file: x", approval.Answer{Choice: approval.Always}, false, approval.ByPerson, 1, []approval.Choice{approval.Once, approval.Session, approval.Refuse}, ""},
		{"a script called like what is allowed", "./make test", approval.Answer{Choice: approval.Refuse}, false, approval.ByPerson, 1, nil, ""},
		{"what acts outside is asked each time", "terraform apply", approval.Answer{Choice: approval.Session}, false, approval.ByPerson, 1, []approval.Choice{approval.Once, approval.Refuse}, ""},
		{"the never class is not asked", "rm -rf /", approval.Answer{Choice: approval.Once}, false, approval.ByPolicy, 0, nil, ""},
		{"a changed command", "make deploy", approval.Answer{Choice: approval.Once, Command: "make -n deploy"}, true, "", 1, nil, "make -n deploy"},
		{"changed into what never may", "make deploy", approval.Answer{Choice: approval.Once, Command: "rm -rf /"}, false, approval.ByPolicy, 1, nil, ""},
		{"no choice is no", "make x", approval.Answer{}, false, approval.ByPerson, 1, nil, ""},
		{"what cannot be read", "echo 'x", approval.Answer{Choice: approval.Once}, true, "", 1, []approval.Choice{approval.Once, approval.Refuse}, ""},
	} {
		asked, answer = nil, row.answer
		d, err := a.Approve(t.Context(), run(row.line))
		if err != nil || d.Allow != row.allow || d.Kind != row.kind && !row.allow || d.Command != row.command || len(asked) != row.asks {
			t.Errorf("%s: %+v, %v, asked %d times", row.name, d, err, len(asked))
		}
		if row.offers != nil && (len(asked) == 0 || !slices.Equal(asked[0].Offers, row.offers)) {
			t.Errorf("%s: offered %+v, want %v", row.name, asked, row.offers)
		}
	}
	if !slices.Equal(rules, []string{"make lint"}) {
		t.Errorf("rules %q", rules)
	}
	lost := errors.New("the window is gone")
	a.Ask = func(context.Context, approval.Question) (approval.Answer, error) { return approval.Answer{}, lost }
	if d, err := a.Approve(t.Context(), run("make y")); d.Allow || !errors.Is(err, lost) {
		t.Errorf("%+v, %v", d, err)
	}
}

// A yes to what is written holds for the session where it stays in the workspace;
// what programs obey is shown each time.
func TestAskingAboutWhatIsWritten(t *testing.T) {
	asked := 0
	var offers []approval.Choice
	a := &approval.Attended{
		Policy:   func() approval.Policy { return approval.Policy{Mode: approval.Manual, Context: onHost} },
		Remember: func(string) error { return nil },
		Ask: func(_ context.Context, q approval.Question) (approval.Answer, error) {
			asked++
			offers = q.Offers
			return approval.Answer{Choice: q.Offers[min(1, len(q.Offers)-2)]}, nil
		},
	}
	for name, want := range map[string]struct {
		asks   int
		offers []approval.Choice
	}{
		"docs/a.md":             {1, []approval.Choice{approval.Once, approval.Session, approval.Always, approval.Refuse}},
		".git/hooks/pre-commit": {2, []approval.Choice{approval.Once, approval.Refuse}},
		".envrc":                {2, []approval.Choice{approval.Once, approval.Refuse}},
		"../other/main.tf":      {2, []approval.Choice{approval.Once, approval.Refuse}},
	} {
		asked = 0
		for range 2 {
			req := approval.Request{Tool: "write_file", Place: onHost.Place, Plan: tool.Plan{Effect: tool.Writes, Path: path.Join(onHost.Dir, name)}}
			if d, err := a.Approve(t.Context(), req); err != nil || !d.Allow {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
		}
		if asked != want.asks || !slices.Equal(offers, want.offers) {
			t.Errorf("%s: asked %d times, offered %v", name, asked, offers)
		}
	}
}

// TestWhatALinkMadeOfIt holds that a yes for a file is none for another one to which the
// file has become a link.
func TestWhatALinkMadeOfIt(t *testing.T) {
	c, linked := onHost, false
	c.Real = func(name string) string {
		if linked && name == c.Workspace+"/notes" {
			return "/home/dev/.ssh/id_rsa"
		}
		return name
	}
	rules, err := approval.ParseRules([]string{"write_file: " + c.Workspace + "/notes"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	a := &approval.Attended{
		Policy: func() approval.Policy { return approval.Policy{Mode: approval.Manual, Context: c, Rules: rules} },
		Ask: func(_ context.Context, q approval.Question) (approval.Answer, error) {
			asked++
			return approval.Answer{Choice: q.Offers[len(q.Offers)-2]}, nil // the widest yes
		},
	}
	cat := approval.Request{Tool: "execute", Place: c.Place, Plan: tool.Plan{Effect: tool.Runs, Command: "cat notes", Path: c.Dir}}
	write := approval.Request{Tool: "write_file", Place: c.Place, Plan: tool.Plan{Effect: tool.Writes, Path: c.Workspace + "/notes"}}
	for i, row := range []struct {
		req  approval.Request
		link bool
		asks int
	}{{cat, false, 1}, {cat, false, 0}, {write, false, 0}, {cat, true, 1}, {write, true, 1}, {cat, false, 0}} {
		asked, linked = 0, row.link
		if d, err := a.Approve(t.Context(), row.req); err != nil || !d.Allow || asked != row.asks {
			t.Errorf("%d: %+v, %v, asked %d times, want %d", i, d, err, asked, row.asks)
		}
	}
}

// What is always allowed in one machine is in the next, whose workspace is elsewhere.
func TestAlwaysHoldsInTheNextMachine(t *testing.T) {
	request := func(c approval.Context, name string) approval.Request {
		return approval.Request{Tool: "edit_file", Place: c.Place, Plan: tool.Plan{Effect: tool.Writes, Path: name}}
	}
	next := inBox
	next.Workspace, next.Dir = "/home/daytona", "/home/daytona"
	for _, row := range []struct {
		name, rule, again string
	}{
		{"/workspace/deploy/shop.yaml", "edit_file: deploy/shop.yaml", "/home/daytona/deploy/shop.yaml"},
	} {
		var remembered []string
		a := &approval.Attended{
			Policy: func() approval.Policy { return approval.Policy{Mode: approval.Manual, Context: inBox} },
			Ask: func(context.Context, approval.Question) (approval.Answer, error) {
				return approval.Answer{Choice: approval.Always}, nil
			},
			Remember: func(rule string) error { remembered = append(remembered, rule); return nil },
		}
		if d, err := a.Approve(t.Context(), request(inBox, row.name)); err != nil || !d.Allow || !slices.Equal(remembered, []string{row.rule}) {
			t.Errorf("%s: %+v, %v, remembered %q", row.name, d, err, remembered)
			continue
		}
		rules, err := approval.ParseRules(remembered, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := approval.Policy{Mode: approval.Manual, Context: next, Rules: rules}
		if d, err := p.Approve(t.Context(), request(next, row.again)); err != nil || !d.Allow {
			t.Errorf("%s: %+v, %v", row.again, d, err)
		}
		if d, err := p.Approve(t.Context(), request(next, path.Dir(row.again)+"/other.yaml")); err != nil || d.Allow {
			t.Errorf("another file beside %s is allowed: %+v, %v", row.again, d, err)
		}
	}
}
