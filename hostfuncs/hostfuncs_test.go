package hostfuncs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/sdk/abi"
)

func TestHostsAreMatchedInOneSpelling(t *testing.T) {
	hosts, err := ParseHosts([]string{"api.acme.example", "*.boxes.acme.example", "other.example:8443", "http://127.0.0.1:9999"})
	if err != nil {
		t.Fatal(err)
	}
	g := Grant{Hosts: hosts}
	for address, want := range map[string]bool{
		"https://api.acme.example/x": true, "https://API.acme.EXAMPLE./x": true, "https://api.acme.example:443/": true,
		"https://b1.boxes.acme.example/": true, "https://other.example:8443/": true, "http://127.0.0.1:9999/": true,
		"http://api.acme.example/": false, "https://api.acme.example:444/": false, "https://boxes.acme.example/": false,
		"https://evilboxes.acme.example/": false, "https://other.example/": false, "http://127.0.0.1:9998/": false,
		"http://localhost:9999/": false, "http://0x7f000001:9999/": false, "https://api.acme.example@evil.example/": false,
		"https://user:pw@api.acme.example/": false, "https://api.acme.example.evil.example/": false, "https://api.acm\u0435.example/": false,
		"file:///etc/passwd": false, "//api.acme.example/": false, "https://169.254.169.254/": false,
	} {
		if _, err := g.check(address); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
	}
	for _, entry := range []string{"", "*", "*.com", "http://api.acme.example", "http://127.0.0.1", "ftp://x.example", "a b", "https://u@x.example", "x.example/path", "*.*.example"} {
		if h, err := ParseHost(entry); err == nil {
			t.Errorf("%q was taken as %v", entry, h)
		}
	}
}

func TestPrivateAddressesAreNotDialled(t *testing.T) {
	hosts, err := ParseHosts([]string{"api.acme.example", "10.1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	g := Grant{Hosts: hosts}
	for address, want := range map[string]bool{
		"93.184.216.34": true, "127.0.0.1": false, "10.0.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"::1": false, "fe80::1": false, "fd00::1": false, "0.0.0.0": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2606:4700::1": true,
	} {
		if got := g.mayDial("api.acme.example", netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if !g.mayDial("10.1.2.3", netip.MustParseAddr("10.1.2.3")) || g.mayDial("10.1.2.3", netip.MustParseAddr("10.1.2.4")) {
		t.Error("an address that is named can be dialled, and no other")
	}
}

func call(t *testing.T, g Grant, op Op) *Call {
	t.Helper()
	f, err := New(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	c := f.Begin(t.Context(), op)
	t.Cleanup(c.Close)
	return c
}

func send(t *testing.T, c *Call, r abi.HTTPRequest) abi.HTTPResponse {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	_, out := c.Invoke("http", nil, data)
	var a abi.HTTPResponse
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSecretsGoWhereTheyMayAndAreNeverSeen(t *testing.T) {
	const key = "sekrit-value-123"
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Header))
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/there", http.StatusTemporaryRedirect)
		default:
			if r.URL.Path == "/bytes" {
				w.Write([]byte{0xff})
			}
			fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), r.URL.Query().Get("k"))
		}
	}))
	defer s.Close()
	both, err := ParseHosts([]string{s.URL, other.URL})
	if err != nil {
		t.Fatal(err)
	}
	auth := map[string][]string{"Authorization": {"Bearer {{secret:api_key}}"}}
	op := Op{Secrets: map[string]Secret{"api_key": {Value: key}}}
	c := call(t, Grant{Hosts: both}, op)
	if a := send(t, c, abi.HTTPRequest{URL: s.URL + "/?k=%7B%7Bsecret:api_key%7D%7D", Headers: auth}); a.Body != "Bearer [secret] {{secret:api_key}}" {
		t.Errorf("got %+v", a)
	}
	if a := send(t, c, abi.HTTPRequest{URL: s.URL, Headers: map[string][]string{"X": {"{{secret:other}}"}}}); a.Error == nil || a.Error.Kind != "permission_denied" || a.Error.Sent {
		t.Errorf("a secret it was not given: %+v", a)
	}
	if a := send(t, c, abi.HTTPRequest{URL: s.URL + "/bytes", Headers: auth}); a.BodyB64 != base64.StdEncoding.EncodeToString([]byte("\xffBearer [secret] ")) {
		t.Errorf("in bytes: %+v", a)
	}
	// In any form a server may give it back in.
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintln(w, r.Header.Get("Authorization"))
		for i := range 3 {
			fmt.Fprintln(w, base64.StdEncoding.EncodeToString([]byte("user:"[:i]+password+"\n")), base64.URLEncoding.EncodeToString([]byte("user:"[:i]+user+"\n")))
		}
		json.NewEncoder(w).Encode([]string{user, password, url.PathEscape(password), url.QueryEscape(password)})
	}))
	defer echo.Close()
	hosts, _ := ParseHosts([]string{echo.URL})
	two := map[string]Secret{"user": {Value: "sekrit"}, "password": {Value: `sekrit-"v/al>ue"?~~` + "\u00e9"}}
	a := send(t, call(t, Grant{Hosts: hosts}, Op{Secrets: two}), abi.HTTPRequest{URL: echo.URL, Headers: map[string][]string{"Authorization": {"{{basic:user:password}}"}}})
	left := strings.NewReplacer("[secret]", "").Replace(a.Body)
	for _, word := range strings.FieldsFunc(left, func(r rune) bool { return strings.ContainsRune(" \n[]\",", r) }) {
		if len(word) > 6 && word != "Authorization" {
			t.Errorf("%q is left of %s", word, a.Body)
		}
	}
	if a.Status != 200 || left == a.Body {
		t.Errorf("got %+v", a)
	}
	// A redirect to another host carries no header of the module.
	if a := send(t, c, abi.HTTPRequest{URL: s.URL + "/away", Headers: auth}); a.Status != 200 || len(seen) != 1 || strings.Contains(seen[0], key) || strings.Contains(seen[0], "Authorization") {
		t.Errorf("got %+v; the other server saw %v", a, seen)
	}
	// And none leads off the list.
	c = call(t, Grant{Hosts: both[:1]}, op)
	if a := send(t, c, abi.HTTPRequest{URL: s.URL + "/away", Headers: auth}); a.Error == nil || a.Error.Kind != "permission_denied" || len(seen) != 1 {
		t.Errorf("got %+v; the other server saw %v", a, seen)
	}
	// A secret bound to a host goes to no other.
	u, _ := url.Parse("https://elsewhere.example/")
	bound := &Call{op: Op{Secrets: map[string]Secret{"api_key": {Value: key, Hosts: []string{"api.acme.example"}}}}}
	if v, err := bound.fill("Bearer {{secret:api_key}}", u); err == nil {
		t.Errorf("it became %q", v)
	}
}

func TestFilesStayInTheirFolder(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for file, content := range map[string]string{filepath.Join(dir, "a"): "inside", filepath.Join(out, "secret"): "outside"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(out, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	c := call(t, Grant{Folders: []Folder{{Name: "f", Path: dir}}}, Op{})
	do := func(fn, root, path string) abi.FileResult {
		data, _ := json.Marshal(abi.FileCall{Fn: fn, Root: root, Path: path})
		_, block := c.Invoke("fs", nil, data)
		var r abi.FileResult
		if err := json.Unmarshal(block, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := do("open", "f", "a")
	if _, data := c.Invoke("ref_read", []int64{int64(r.Handle), 100, 0}, nil); string(data) != "inside" {
		t.Errorf("read %q", data)
	}
	for _, row := range [][3]string{
		{"open", "f", "link"}, {"open", "f", "../x"}, {"open", "f", "/etc/passwd"}, {"open", "other", "a"}, {"stat", "f", "link"},
		{"create", "f", "new"}, {"remove", "f", "a"}, {"open", "f", ".git/config"}, {"chmod", "f", "a"}, {"open", "f", "."},
	} {
		if r := do(row[0], row[1], row[2]); r.Error == nil {
			t.Errorf("%v: %+v", row, r)
		}
	}
}

// A link of the folder may be read through, but nothing is written where it leads.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "hooks", "pre-push"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	c := call(t, Grant{Folders: []Folder{{Name: "f", Path: dir, Write: true}}}, Op{})
	for _, fn := range []string{"create", "remove"} {
		for _, name := range []string{"link/hooks/pre-push", "link/new", "link", ".git/hooks/new", ".GIT/config"} {
			if r := invoke[abi.FileResult](t, c, "fs", abi.FileCall{Fn: fn, Root: "f", Path: name}); r.Error == nil {
				t.Errorf("%s %s: %+v", fn, name, r)
			}
		}
	}
	if r := invoke[abi.FileResult](t, c, "fs", abi.FileCall{Fn: "create", Root: "f", Path: "new"}); r.Error != nil || r.Handle == 0 {
		t.Errorf("a file of its own: %+v", r)
	}
	c.Close()
	if names, err := os.ReadDir(filepath.Join(dir, ".git", "hooks")); err != nil || len(names) != 1 {
		t.Errorf("the hooks are %v, %v", names, err)
	}
}

// What a module opens is bounded, until it lets go of something.
func TestAModuleOpensOnlySoMuchAtATime(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer s.Close()
	hosts, err := ParseHosts([]string{s.URL})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := call(t, Grant{Hosts: hosts, Folders: []Folder{{Name: "f", Path: dir}}}, Op{})
	defer c.Close() // before the server, which waits for its requests
	request, _ := json.Marshal(abi.HTTPRequest{URL: s.URL})
	var handles []int64
	for range 1000 {
		n, _ := c.Invoke("http_start", nil, request)
		if n < 0 {
			break
		}
		handles = append(handles, n)
	}
	if len(handles) != mostOpen {
		t.Fatalf("%d requests are under way", len(handles))
	}
	if r := invoke[abi.FileResult](t, c, "fs", abi.FileCall{Fn: "open", Root: "f", Path: "a"}); r.Error == nil {
		t.Errorf("a file: %+v", r)
	}
	if a := send(t, c, abi.HTTPRequest{URL: s.URL}); a.Error == nil || a.Error.Kind != "permission_denied" {
		t.Errorf("a request: %+v", a)
	}
	c.Invoke("stream_close", handles[:1], nil)
	if r := invoke[abi.FileResult](t, c, "fs", abi.FileCall{Fn: "open", Root: "f", Path: "a"}); r.Error != nil {
		t.Errorf("once one is closed: %+v", r)
	}
}

// What is waited for is told when it changes, and not without end.
func TestProgressIsToldInAFewWords(t *testing.T) {
	var told []string
	c := call(t, Grant{}, Op{Progress: func(text string) { told = append(told, text) }})
	for i := range 10000 {
		c.Invoke("progress", nil, fmt.Appendf(nil, "step %d", i/2))
	}
	if len(told) != mostWords || told[0] != "step 0" || told[1] != "step 1" {
		t.Errorf("%d words: %.40q…", len(told), told)
	}
}

func TestNothingButWordsIsForDescribe(t *testing.T) {
	c := call(t, Grant{}, Op{Pure: true})
	for _, f := range abi.Functions() {
		n, out := c.Invoke(f.Name, []int64{0, 0, 0}, []byte("{}"))
		pure := f.Name == "log" || f.Name == "now" || f.Name == "last_error" || f.Name == "random"
		if denied := n == abi.StatusFailed && out == nil; denied == pure {
			t.Errorf("%s: %d, %q", f.Name, n, out)
		}
	}
}

func TestNoFunctionBreaksOnBadInput(t *testing.T) {
	c := call(t, Grant{}, Op{})
	for _, f := range abi.Functions() {
		for _, n := range []int64{-1, 0, 1, 1 << 31} {
			if f.Name == "sleep" {
				n = -1
			}
			c.Invoke(f.Name, []int64{n, n, n}, []byte("\xff{"))
			if c.last != nil && strings.Contains(c.last.Message, "talkops failed") {
				t.Errorf("%s(%d): %v", f.Name, n, c.last)
			}
		}
	}
}
