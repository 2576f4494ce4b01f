package web

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// resolver answers each question for an IPv4 address with the next of answers, and the
// last one from then on.
func resolver(t *testing.T, answers ...[]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var mu sync.Mutex
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			const header, tail = 12, 5 // bytes before the name, and after its labels
			end := header + bytes.IndexByte(buf[header:n], 0) + tail
			out := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, buf[header:end]...)
			if buf[end-3] == 1 { // an IPv4 address is asked for
				mu.Lock()
				for _, a := range answers[0] {
					ip := netip.MustParseAddr(a).As4()
					out[7]++
					out = append(append(out, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
				}
				if len(answers) > 1 {
					answers = answers[1:]
				}
				mu.Unlock()
			}
			conn.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// A name that stood for a public address and then stands for this computer leads
// nowhere, also among others, and where a public host redirects to it.
func TestNameThatChangesItsAddress(t *testing.T) {
	const public, private = "127.0.0.2", "127.0.0.1" // the first is taken for public here
	l, err := net.Listen("tcp4", public+":0")
	if err != nil {
		t.Skip("this computer has one address of its own: ", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	inner, err := net.Listen("tcp4", private+":"+port)
	if err != nil {
		t.Skip("the port is taken: ", err)
	}
	start := func(l net.Listener, h http.HandlerFunc) {
		srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
		srv.Start()
		t.Cleanup(srv.Close)
	}
	hit := false
	start(inner, func(http.ResponseWriter, *http.Request) { hit = true })
	start(l, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		w.Write([]byte("outside"))
	})
	check := func(a netip.Addr) error {
		if a.String() == public {
			return nil
		}
		return Public(a)
	}
	for _, row := range []struct {
		path    string
		answers [][]string
		reached bool
		denied  bool // the last of them
	}{
		{"", [][]string{{public}}, true, false},
		{"", [][]string{{private}}, false, true},
		{"", [][]string{{public}, {private}}, true, true},
		{"", [][]string{{private, public}}, true, false},
		{"away", [][]string{{public}, {private}}, false, true},
	} {
		d := newDialer(check)
		d.Resolver = resolver(t, row.answers...)
		opts := Options{Check: check, Allowed: func(string, string) bool { return true }}
		f := Tools(opts)[0].(*fetch)
		f.client = newClient(d)
		reached, last := false, ""
		times := len(row.answers)
		if row.path != "" {
			times = 1
		}
		for range times {
			r := call(t, f, fmt.Sprintf(`{"url":"http://name.example:%s/%s"}`, port, row.path))
			reached = reached || strings.Contains(r.Text, "outside")
			last = string(r.Code)
		}
		if hit || reached != row.reached || (last == string(sandbox.CodePermissionDenied)) != row.denied {
			t.Errorf("%q %v: inside %v, outside %v, last %q", row.path, row.answers, hit, reached, last)
		}
	}
}
