package approval

import (
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/tool"
)

// Tools that reach out from the user's computer are asked for wherever a session
// works.
func TestLeaving(t *testing.T) {
	hosts, err := ParseHosts([]string{"docs.acme.com", "*.example.com", "acme.com:8443"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := ParseRules([]string{"fetch_url: rules.acme.com", "fetch_url: https://one.acme.com/docs/*", "web_search: *", "fetch_url: ports.acme.com:9000", "fetch_url: open.acme.com*", "fetch_url: any.acme.com:*"}, nil, []string{"fetch_url: bad.example.com", "fetch_url: *.example.com/admin/*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		mode Mode
		tool string
		url  string
		kind Kind // "" is allowed
	}{
		{Manual, "fetch_url", "https://acme.org/x", NeedsPerson},
		{Smart, "fetch_url", "https://acme.org/x", NeedsPerson},
		{Plan, "fetch_url", "https://docs.acme.com/x", ByPolicy},
		{Yolo, "fetch_url", "https://acme.org/x", ""},
		{Yolo, "fetch_url", "https://bad.example.com/x", ByPolicy},
		{Smart, "fetch_url", "https://docs.acme.com/x", ""},
		{Manual, "fetch_url", "http://docs.acme.com/x", ""},
		{Smart, "fetch_url", "https://docs.acme.com:9000/x", NeedsPerson},
		{Smart, "fetch_url", "https://acme.com:8443/x", ""},
		{Smart, "fetch_url", "https://acme.com/x", NeedsPerson},
		{Smart, "fetch_url", "https://a.b.example.com/x", ""},
		{Smart, "fetch_url", "https://example.com/x", NeedsPerson},
		{Smart, "fetch_url", "https://bad.example.com/x", ByPolicy},
		{Smart, "fetch_url", "https://evil-example.com/x", NeedsPerson},
		{Smart, "fetch_url", "https://docs.acme.com.evil.org/", NeedsPerson},
		{Smart, "fetch_url", "https://rules.acme.com/x", ""},
		{Smart, "fetch_url", "https://rules.acme.com.evil.org/", NeedsPerson},
		{Smart, "fetch_url", "https://rules.acme.com:9000/x", NeedsPerson},
		{Smart, "fetch_url", "https://ports.acme.com:9000/x", ""},
		{Smart, "fetch_url", "https://ports.acme.com/x", NeedsPerson},
		{Smart, "fetch_url", "https://bad.example.com:9000/x", ByPolicy},
		{Smart, "fetch_url", "https://one.acme.com/docs/a", ""},
		{Smart, "fetch_url", "http://one.acme.com/docs/a", NeedsPerson},
		{Smart, "fetch_url", "https://one.acme.com/docs/../private", NeedsPerson},
		{Smart, "fetch_url", "https://one.acme.com/docs/%2e%2e/private", NeedsPerson},
		{Smart, "fetch_url", "https://one.acme.com/private", NeedsPerson},
		{Smart, "fetch_url", "https://evil.org/?https://one.acme.com/docs/a", NeedsPerson},
		{Yolo, "fetch_url", "https://bad.example.com./x", ByPolicy},
		{Smart, "fetch_url", "https://open.acme.com/a/b", ""},
		{Smart, "fetch_url", "https://open.acme.com.evil.org/", NeedsPerson},
		{Smart, "fetch_url", "https://open.acme.company/", NeedsPerson},
		{Smart, "fetch_url", "https://open.acme.com:9000/", NeedsPerson},
		{Smart, "fetch_url", "https://any.acme.com:9000/", ""},
		{Smart, "fetch_url", "https://any.acme.com.evil.org:9000/", NeedsPerson},
		{Smart, "fetch_url", "https://a.example.com/admin/x", ByPolicy},
		{Smart, "fetch_url", "https://a.example.com/%61dmin/x", ByPolicy},
		{Smart, "fetch_url", "https://a.example.com//admin/x", ByPolicy},
		{Smart, "fetch_url", "https://a.example.com/x/../admin/x", ByPolicy},
		{Smart, "fetch_url", "https://a.example.com/./admin/", ByPolicy},
		{Smart, "fetch_url", "https://a.example.com/administration", ""},
		{Smart, "web_search", "https://api.search.acme.com/x", ""},
	} {
		for _, place := range []Place{{Host: true}, {Provider: "daytona", Disposable: true}} {
			p := Policy{Mode: row.mode, Rules: rules, Hosts: hosts}
			d, err := p.Approve(t.Context(), Request{Tool: row.tool, Plan: tool.Plan{Effect: tool.Leaves, URL: row.url}, Place: place})
			if err != nil || d.Allow != (row.kind == "") || d.Kind != row.kind {
				t.Errorf("%s %s %s: %+v, %v", row.mode, row.tool, row.url, d, err)
			}
			if d.Kind == NeedsPerson && !strings.Contains(d.Hint, "web.allow_hosts") {
				t.Errorf("%s: the hint is %q", row.url, d.Hint)
			}
		}
	}
	for _, bad := range []string{"", "*", "*.com", "https://acme.com", "acme.com/x", "user@acme.com", "a b", "*.*.com"} {
		if _, err := ParseHosts([]string{bad}); err == nil {
			t.Errorf("%q is taken for a host", bad)
		}
	}
}
