package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// anywhere lets a test reach its own server.
func anywhere(netip.Addr) error { return nil }

func call(t *testing.T, x tool.Tool, input string) tool.Result {
	t.Helper()
	r, err := x.Run(t.Context(), input, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func fetchFrom(t *testing.T, opts Options, at string) tool.Result {
	t.Helper()
	return call(t, Tools(opts)[0], fmt.Sprintf(`{"url":%q}`, at))
}

func TestPublic(t *testing.T) {
	for _, row := range []struct {
		addr string
		ok   bool
	}{
		{"93.184.215.14", true}, {"2606:4700::6810:84e5", true}, {"::ffff:93.184.215.14", true},
		{"127.0.0.1", false}, {"127.8.9.1", false}, {"::1", false}, {"0.0.0.0", false}, {"::", false}, {"0.1.2.3", false},
		{"10.0.0.1", false}, {"172.16.0.1", false}, {"192.168.1.1", false}, {"fd00::1", false}, {"::ffff:10.0.0.1", false}, {"::10.0.0.1", false},
		{"169.254.169.254", false}, {"fe80::1", false}, {"fe80::1%eth0", false}, {"fd00:ec2::254", false}, {"168.63.129.16", false}, {"100.100.100.200", false},
		{"224.0.0.1", false}, {"ff02::1", false}, {"255.255.255.255", false}, {"240.0.0.1", false},
		{"64:ff9b::a00:1", false}, {"2002:a00:1::", false}, {"2001:0:a00:1::", false}, {"2001:db8::1", false}, {"198.18.0.1", false}, {"fec0::1", false},
	} {
		if err := Public(netip.MustParseAddr(row.addr)); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("Public(%s) is %v", row.addr, err)
		}
	}
}

func TestPrivateAddressesAreNotDialled(t *testing.T) {
	hit := false
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { hit = true; w.Write([]byte("inside")) })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(srv, "http://"))
	for _, at := range []string{
		srv, "http://169.254.169.254/latest/meta-data/", "http://[::ffff:10.0.0.1]/", "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port,
		"http://localhost:" + port, "http://0.0.0.0:" + port,
	} {
		r := fetchFrom(t, Options{Time: 5 * time.Second}, at)
		if r.Code != sandbox.CodePermissionDenied || !strings.Contains(r.Text, "public internet") {
			t.Errorf("%s: %+v", at, r)
		}
	}
	if hit {
		t.Error("a server on this computer was reached")
	}
}

func TestRedirectToAPrivateAddressIsNotDialled(t *testing.T) {
	hit := false
	inside := serve(t, func(http.ResponseWriter, *http.Request) { hit = true })
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusTemporaryRedirect)
	})
	// The front has an address that is taken for public, and any host may be led to.
	at := netip.MustParseAddrPort(strings.TrimPrefix(front, "http://"))
	first := true
	opts := Options{Allowed: func(string, string) bool { return true }, Check: func(a netip.Addr) error {
		if first && a == at.Addr() {
			first = false
			return nil
		}
		return Public(a)
	}}
	if r := fetchFrom(t, opts, front); hit || r.Code != sandbox.CodePermissionDenied {
		t.Errorf("reached: %v, %+v", hit, r)
	}
}

func TestRedirects(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("elsewhere")) })
	front := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other+"/x", http.StatusMovedPermanently)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case "/end":
			w.Write([]byte("the end"))
		}
	})
	opts := Options{Check: anywhere}
	for _, row := range []struct{ name, path, want string }{
		{"on the same host is followed", "/same", "source: " + front + "/end\n\nthe end\n"},
		{"to another port is told", "/other", other + "/x, which is another place"},
		{"for ever ends", "/loop", "more than 5 times"},
		{"to a file is not followed", "/file", "does not take"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if r := fetchFrom(t, opts, front+row.path); !strings.Contains(r.Text, row.want) {
				t.Errorf("got %q, want %q", r.Text, row.want)
			}
		})
	}
	opts.Allowed = func(string, string) bool { return true }
	if r := fetchFrom(t, opts, front+"/other"); !strings.Contains(r.Text, "elsewhere") {
		t.Errorf("an allowed host is not followed: %+v", r)
	}
	opts.Barred = func(address string) bool { return address == other+"/x" || address == front+"/end" }
	for _, path := range []string{"/other", "/same"} {
		if r := fetchFrom(t, opts, front+path); r.Code != sandbox.CodePermissionDenied {
			t.Errorf("%s leads to what a rule is for: %+v", path, r)
		}
	}
}

func TestPages(t *testing.T) {
	big := strings.Repeat("0123456789", 100)
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte(`<title>t</title><script>alert(1)</script><h1>Head</h1><p>See <a href="/docs">the docs</a>.</p><pre><code>a  b</code></pre>`))
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{\"a\": \"\x1b[31mred\u202e\"}"))
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			w.Write([]byte("gr\xfc\xdfe"))
		case "/binary":
			w.Header().Set("Content-Type", "application/octet-stream")
		case "/big":
			w.Header().Set("Content-Type", "text/plain")
			w.Write([]byte(big))
		default:
			http.NotFound(w, r)
		}
	})
	opts := Options{Check: anywhere, ShowBytes: 300, PageBytes: 600}
	for _, row := range []struct{ path, want string }{
		{"/html", "# Head\n\nSee [the docs](" + at + "/docs).\n\n```\na  b\n```\n"},
		{"/json", `{"a": "[31mred"}`},
		{"/latin", "grüße"},
		{"/binary", "application/octet-stream, not text"},
		{"/big", "[bytes 0 to 300 of 600; go on with offset 300]"},
		{"/none", "404 Not Found"},
	} {
		if r := fetchFrom(t, opts, at+row.path); !strings.Contains(r.Text, row.want) {
			t.Errorf("%s: got %q, want %q", row.path, r.Text, row.want)
		}
	}
	if r := call(t, Tools(opts)[0], fmt.Sprintf(`{"url":"%s/big","offset":300}`, at)); !strings.Contains(r.Text, "the rest was not read") {
		t.Errorf("the end of a page that was cut: %q", r.Text)
	}
	if r := call(t, Tools(opts)[0], fmt.Sprintf(`{"url":"%s/big","offset":9000}`, at)); r.Code != sandbox.CodeOutOfRange {
		t.Errorf("behind the end: %+v", r)
	}
}

func TestNothingOfTheUserIsSent(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://user:word@127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://user:word@127.0.0.1:1")
	var seen []http.Header
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1", Path: "/"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next", http.StatusFound)
		}
	})
	fetchFrom(t, Options{Check: anywhere}, at)
	fetchFrom(t, Options{Check: anywhere}, at)
	if len(seen) != 4 {
		t.Fatalf("%d requests came", len(seen))
	}
	for _, h := range seen {
		for _, name := range []string{"Cookie", "Authorization", "Proxy-Authorization", "Referer"} {
			if h.Get(name) != "" {
				t.Errorf("%s: %s was sent", name, h.Get(name))
			}
		}
	}
}

func TestTimeIsBounded(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if r := fetchFrom(t, Options{Check: anywhere, Time: 100 * time.Millisecond}, at); r.Code != sandbox.CodeTimeout {
		t.Errorf("got %+v", r)
	}
}

func TestWhatIsNoAddress(t *testing.T) {
	f := Tools(Options{})[0]
	for _, input := range []string{
		`{"url":""}`, `{"url":"file:///etc/passwd"}`, `{"url":"gopher://acme.com"}`, `{"url":"https://"}`, `{"url":"acme.com"}`,
		`{"url":"https://user:word@acme.com/"}`, `{"url":"https://\uff41cme.com/"}`, `{"url":"https://acme\u3002com/"}`, `{"url":"https://%EF%BD%81cme.com/"}`, `{"url":"https://acme.com","offset":-1}`, `{"uri":"https://acme.com"}`, `{}`, ``, `{"url":"https://acme.com"} x`,
	} {
		if _, err := f.Plan(input); sandbox.CodeOf(err) != sandbox.CodeInvalidArgument {
			t.Errorf("%s: %v", input, err)
		}
	}
	p, err := f.Plan(`{"url":"https://Docs.ACME.com/a?b=c#d"}`)
	if err != nil || p.Effect != tool.Leaves || p.URL != "https://docs.acme.com/a?b=c" {
		t.Errorf("plan is %+v, %v", p, err)
	}
}

func TestSearch(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/brave" && r.Header.Get("X-Subscription-Token") == "key" && r.URL.Query().Get("q") == "pod eviction":
			w.Write([]byte(`{"web":{"results":[{"title":"A <strong>pod</strong>","url":"https://acme.com/a","description":"why\u001b[31m"}]}}`))
		case r.URL.Path == "/tavily" && r.Method == http.MethodPost && r.Header.Get("Authorization") == "Bearer key":
			w.Write([]byte(`{"results":[{"title":"A pod","url":"https://acme.com/a","content":"why"},{"title":"B","url":"https://acme.com/b","content":""}]}`))
		case r.URL.Path == "/sx/search" && r.URL.Query().Get("format") == "json":
			w.Write([]byte(`{"results":[{"title":"A pod","url":"https://acme.com/a","content":"why"}]}`))
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/brave", http.StatusFound)
		default:
			http.Error(w, "no", http.StatusUnauthorized)
		}
	})
	one := "\n1. A pod\n   https://acme.com/a\n   why\n"
	host := strings.TrimPrefix(at, "http://")
	for _, row := range []struct {
		name string
		with Searcher
		want string
	}{
		{"brave", &brave{"key", at + "/brave"}, "source: " + host + "\n" + strings.Replace(one, "why", "why[31m", 1)},
		{"tavily", &tavily{"key", at + "/tavily"}, "source: " + host + "\n" + one + "\n2. B\n   https://acme.com/b\n"},
		{"searxng", &searxng{at + "/sx"}, "source: " + host + "\n" + one},
		{"a wrong key", &brave{"other", at + "/brave"}, "error unauthenticated: the search service at " + host + " does not accept the key or the request (401)"},
		{"a redirect is not followed with the key", &brave{"key", at + "/moved"}, "error unavailable: the search service at " + host + " answered 302"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tools := Tools(Options{Search: row.with})
			if len(tools) != 2 {
				t.Fatal("there is no web_search")
			}
			if r := call(t, tools[1], `{"query":"pod eviction"}`); r.Text != row.want {
				t.Errorf("got %q, want %q", r.Text, row.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	for _, row := range []struct {
		name, address, key string
		want               string
		fails              bool
	}{
		{"", "", "", "", false},
		{"", "", "BRAVE_API_KEY", "api.search.brave.com", false},
		{"", "", "TAVILY_API_KEY", "api.tavily.com", false},
		{"", "http://10.1.1.1:8080/sx/", "", "10.1.1.1:8080", false},
		{"", "http://10.1.1.1:8080", "TAVILY_API_KEY", "api.tavily.com", false},
		{"searxng", "http://10.1.1.1:8080", "TAVILY_API_KEY", "10.1.1.1:8080", false},
		{"brave", "", "TAVILY_API_KEY", "", true},
		{"searxng", "", "", "", true},
		{"searxng", "ftp://x", "", "", true},
		{"bing", "", "", "", true},
	} {
		s, err := Choose(row.name, row.address, func(name string) string {
			if name == row.key {
				return "key"
			}
			return ""
		})
		got := ""
		if s != nil {
			u, _ := url.Parse(s.Endpoint())
			got = u.Host
		}
		if got != row.want || (err != nil) != row.fails {
			t.Errorf("%+v: %q, %v", row, got, err)
		}
	}
	if len(Tools(Options{})) != 1 {
		t.Error("web_search is offered without a service")
	}
}

func TestHostilePagesEndInTime(t *testing.T) {
	for name, page := range map[string]string{
		"deep": strings.Repeat("<div><b>", 100_000), "lists": strings.Repeat("<ul><li>", 50_000), "tables": strings.Repeat("<table><tr><td>", 50_000),
		"brackets": strings.Repeat("<![CDATA[", 100_000), "links": strings.Repeat("<a href=x>", 100_000), "quotes": strings.Repeat("<blockquote>", 100_000),
		"stars": "<p>" + strings.Repeat("*_`[", 400_000), "siblings": strings.Repeat("<b>x</b> ", 100_000), "code": "<code>" + strings.Repeat("`` ", 400_000),
		"lines": strings.Repeat("x<br>", 200_000), "items": "<ol>" + strings.Repeat("<li>x", 200_000), "pre": "<pre>" + strings.Repeat("```\n", 300_000),
		"spaces": "<p>" + strings.Repeat(" \n", 800_000), "entities": "<p>" + strings.Repeat("&amp;", 300_000), "broken": strings.Repeat("<b><i><p>", 60_000),
	} {
		t.Run(name, func(t *testing.T) {
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Write([]byte(page))
			})
			start := time.Now()
			fetchFrom(t, Options{Check: anywhere, Time: 5 * time.Second}, at)
			if took := time.Since(start); took > 2*time.Minute { // on a busy machine; what is quadratic takes hours
				t.Errorf("took %v", took)
			}
		})
	}
}
