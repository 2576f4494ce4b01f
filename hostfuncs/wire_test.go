package hostfuncs

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/coder/websocket"
	"github.com/talkops-ai/talkops/sdk/abi"
)

// granted is a call that may reach a server.
func granted(t *testing.T, s *httptest.Server, op Op) *Call {
	t.Helper()
	hosts, err := ParseHosts([]string{s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return call(t, Grant{Hosts: hosts}, op)
}

func invoke[R any](t *testing.T, c *Call, name string, arg any) (out R) {
	t.Helper()
	data, err := json.Marshal(arg)
	if err != nil {
		t.Fatal(err)
	}
	_, block := c.Invoke(name, nil, data)
	if err := json.Unmarshal(block, &out); err != nil {
		t.Fatalf("%s answered %q: %v", name, block, err)
	}
	return out
}

// next waits for the next record of a stream.
func next(t *testing.T, c *Call, handle int32) (string, int64) {
	t.Helper()
	for {
		n, data := c.Invoke("stream_next", []int64{int64(handle), 100}, nil)
		if n != abi.StatusWait {
			return string(data), n
		}
	}
}

func TestBodiesAreMadeOfParts(t *testing.T) {
	var got []byte
	var head http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		head = r.Header
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		got, _ = io.ReadAll(body)
	}))
	defer s.Close()
	content := strings.Repeat("日本 \"quoted\"\n\x00", 5000)
	for name, row := range map[string]struct {
		parts  func(ref int32) []abi.Part
		encode string
		want   string
	}{
		"text and bytes":  {func(int32) []abi.Part { return []abi.Part{{Text: "a"}, {B64: "AP8="}} }, "", "a\x00\xff"},
		"a file as it is": {func(ref int32) []abi.Part { return []abi.Part{{Text: "<"}, {Ref: ref}, {Text: ">"}} }, "", "<" + content + ">"},
		"a file as base64": {func(ref int32) []abi.Part {
			return []abi.Part{{Text: `{"c":"`}, {Ref: ref, As: "base64"}, {Text: `"}`}}
		}, "",
			`{"c":"` + base64.StdEncoding.EncodeToString([]byte(content)) + `"}`},
		"compressed":         {func(ref int32) []abi.Part { return []abi.Part{{Ref: ref}} }, "gzip", content},
		"compressed text":    {func(int32) []abi.Part { return []abi.Part{{Text: "text"}} }, "gzip", "text"},
		"a file in a string": {func(ref int32) []abi.Part { return []abi.Part{{Text: `{"c":"`}, {Ref: ref, As: "json"}, {Text: `"}`}} }, "", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			c := granted(t, s, Op{})
			ref, _ := c.AddSource(iotestHalf{strings.NewReader(content)})
			if a := send(t, c, abi.HTTPRequest{Method: "POST", URL: s.URL, Parts: row.parts(ref), Encode: row.encode}); a.Status != 200 {
				t.Fatalf("%+v", a)
			}
			if row.want == "json" {
				var v struct{ C string }
				if err := json.Unmarshal(got, &v); err != nil || v.C != content {
					t.Errorf("%d bytes, %v", len(v.C), err)
				}
			} else if string(got) != row.want {
				t.Errorf("got %d bytes, want %d", len(got), len(row.want))
			}
		})
	}
	c := granted(t, s, Op{})
	ref, _ := c.AddSource(strings.NewReader(content))
	send(t, c, abi.HTTPRequest{Method: "POST", URL: s.URL, Multipart: []abi.Part{
		{Name: "meta", Text: "{}", Headers: map[string]string{"Content-Type": "application/json"}},
		{Name: "file", Filename: `a "b"` + "\r\nX: y", Ref: ref},
	}})
	_, params, err := mime.ParseMediaType(head.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := multipart.NewReader(bytes.NewReader(got), params["boundary"]).ReadForm(1 << 20)
	if err != nil || form.Value["meta"][0] != "{}" || len(form.File["file"]) != 1 || form.File["file"][0].Size != int64(len(content)) {
		t.Errorf("form %+v, %v", form, err)
	}
	for _, r := range []abi.HTTPRequest{
		{Body: "a", Parts: []abi.Part{{Text: "b"}}}, {Parts: []abi.Part{{Ref: 77}}}, {Parts: []abi.Part{{Text: "x", As: "base64"}}},
		{Parts: []abi.Part{{B64: "?"}}}, {Body: "a", Encode: "zip"},
	} {
		r.Method, r.URL = "POST", s.URL
		if a := send(t, c, r); a.Error == nil || a.Error.Kind != "invalid_argument" {
			t.Errorf("%+v: %+v", r, a)
		}
	}
}

// iotestHalf reads a little at a time, in the middle of characters.
type iotestHalf struct{ r io.Reader }

func (h iotestHalf) Read(p []byte) (int, error) { return h.r.Read(p[:min(len(p), 1001)]) }

func TestWebSocketsCarryMessagesAndOutput(t *testing.T) {
	const key = "sekrit-value-123"
	closed := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"out","data":"streamed"}`))
		for {
			typ, data, err := conn.Read(r.Context())
			if err != nil {
				closed <- fmt.Sprint(websocket.CloseStatus(err))
				return
			}
			if string(data) == "bye" {
				conn.Close(websocket.StatusCode(4001), "enough")
				return
			}
			conn.Write(r.Context(), typ, append([]byte("echo "), data...))
		}
	}))
	defer s.Close()
	address := "ws" + strings.TrimPrefix(s.URL, "http")
	var out bytes.Buffer
	c := granted(t, s, Op{Stdout: &out, Secrets: map[string]Secret{"api_key": {Value: key}}})
	open := func(auth string) abi.HTTPResponse {
		return send(t, c, abi.HTTPRequest{URL: address, Headers: map[string][]string{"Authorization": {auth}}, Response: abi.HTTPMode{
			Mode: "stream", Route: &abi.Route{Field: "type", Stdout: "out", Data: "data"},
		}})
	}
	say := func(handle int32, m abi.Message) int64 {
		data, _ := json.Marshal(m)
		for {
			if n, _ := c.Invoke("stream_send", []int64{int64(handle)}, data); n != abi.StatusWait {
				return n
			}
		}
	}
	if a := open("Bearer wrong"); a.Error == nil || a.Error.Kind != "unauthenticated" || a.Error.Status != 401 {
		t.Errorf("refused: %+v", a)
	}
	a := open("Bearer {{secret:api_key}}")
	if a.Error != nil || a.Status != 101 || a.Stream == 0 {
		t.Fatalf("%+v", a)
	}
	for _, row := range []struct {
		say  abi.Message
		want string
	}{
		{abi.Message{Op: "text", Data: "hello"}, `{"op":"text","data":"echo hello"}`},
		{abi.Message{Op: "binary", B64: "AP8="}, `{"op":"binary","b64":"ZWNobyAA/w=="}`},
		{abi.Message{Op: "text", Data: key}, `{"op":"text","data":"echo [secret]"}`},
	} {
		if n := say(a.Stream, row.say); n != 0 {
			t.Fatalf("sent: %d %v", n, c.last)
		}
		if got, n := next(t, c, a.Stream); got != row.want {
			t.Errorf("got %q (%d), want %q", got, n, row.want)
		}
	}
	if out.String() != "streamed" {
		t.Errorf("output %q", out.String())
	}
	if n := say(a.Stream, abi.Message{Op: "dance"}); n != abi.StatusFailed {
		t.Errorf("a message of no kind: %d", n)
	}
	say(a.Stream, abi.Message{Op: "text", Data: "bye"})
	if got, n := next(t, c, a.Stream); n != abi.StatusEnd {
		t.Errorf("after the close: %q (%d)", got, n)
	}
	_, block := c.Invoke("stream_info", []int64{int64(a.Stream)}, nil)
	if want := `{"status":101,"code":4001,"reason":"enough","stdout":8,"stderr":0}`; string(block) != want {
		t.Errorf("info %s, want %s", block, want)
	}
	a = open("Bearer {{secret:api_key}}")
	c.Invoke("stream_finish", []int64{int64(a.Stream)}, nil)
	next(t, c, a.Stream)
	select {
	case got := <-closed:
		if got != "StatusNormalClosure" {
			t.Errorf("closed with %s", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("the other side was not told")
	}
	if a := send(t, c, abi.HTTPRequest{URL: "wss://elsewhere.example/"}); a.Error == nil || a.Error.Kind != "permission_denied" {
		t.Errorf("a host that is not granted: %+v", a)
	}
}

func TestEnvelopesAreRecords(t *testing.T) {
	frame := func(flags byte, data []byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data))), data...)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(`{"n":2}`))
	z.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		switch r.URL.Path {
		case "/":
			w.Write(frame(0, []byte(`{"n":1}`)))
			w.Write(frame(1, packed.Bytes()))
			w.Write(frame(0, []byte(`{"s":"err","d":"routed"}`)))
			w.Write(frame(0, []byte{0xff}))
			w.Write(frame(2, []byte(`{"end":true}`)))
		case "/huge":
			w.Write([]byte{0, 0xff, 0xff, 0xff, 0xff})
		case "/cut":
			w.Write(frame(0, []byte("four"))[:7])
		}
		w.Header().Set("Grpc-Status", "7")
	}))
	defer s.Close()
	var out bytes.Buffer
	c := granted(t, s, Op{Stderr: &out})
	open := func(path string) int32 {
		a := send(t, c, abi.HTTPRequest{URL: s.URL + path, Response: abi.HTTPMode{Mode: "stream", Frame: "envelope", Route: &abi.Route{Field: "s", Stderr: "err", Data: "d"}}})
		return a.Stream
	}
	h := open("/")
	for _, want := range []string{`{"flags":0,"data":"{\"n\":1}"}`, `{"flags":0,"data":"{\"n\":2}"}`, `{"flags":0,"b64":"/w=="}`, `{"flags":2,"data":"{\"end\":true}"}`, ""} {
		if got, _ := next(t, c, h); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	_, block := c.Invoke("stream_info", []int64{int64(h)}, nil)
	if want := `{"status":200,"trailers":{"grpc-status":["7"]},"stdout":0,"stderr":6}`; string(block) != want || out.String() != "routed" {
		t.Errorf("info %s, want %s; output %q", block, want, out.String())
	}
	for path, want := range map[string]string{"/huge": "too_large", "/cut": "unavailable"} {
		if _, n := next(t, c, open(path)); n != abi.StatusFailed || c.last.Kind != want {
			t.Errorf("%s: %d, %+v", path, n, c.last)
		}
	}
}

func TestKeysSignWithoutBeingSeen(t *testing.T) {
	const key = "sekrit-value-123"
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer s.Close()
	c := granted(t, s, Op{Secrets: map[string]Secret{"key": {Value: key}}, Settings: map[string]string{"id": "AKIDEXAMPLE"}})
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte("what"))
	if r := invoke[abi.MACResult](t, c, "mac", abi.MACCall{Alg: "hmac-sha256", Secret: "key", Data: "what"}); r.MAC != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%+v", r)
	}
	for _, bad := range []abi.MACCall{{Alg: "hmac-sha256", Secret: "other"}, {Alg: "md5", Secret: "key"}, {Alg: "hmac-sha1", Secret: "key", DataB64: "?"}, {Alg: "hmac-sha1", Secret: "key", Out: "rot13"}} {
		if r := invoke[abi.MACResult](t, c, "mac", bad); r.Error == nil || r.MAC != "" {
			t.Errorf("%+v: %+v", bad, r)
		}
	}
	for range mostMACs {
		invoke[abi.MACResult](t, c, "mac", abi.MACCall{Alg: "hmac-sha256", Secret: "key"})
	}
	if r := invoke[abi.MACResult](t, c, "mac", abi.MACCall{Alg: "hmac-sha256", Secret: "key"}); r.Error == nil || r.Error.Kind != "permission_denied" {
		t.Errorf("one too many: %+v", r)
	}

	sign := &abi.Sign{Kind: "sigv4", Service: "boxes", Region: "eu-west-1", KeyID: "id", Key: "key"}
	if a := send(t, c, abi.HTTPRequest{Method: "POST", URL: s.URL + "/a?b=c", Body: "body", Sign: sign}); a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	// The vendor signs what it got, and comes to the same.
	when, err := time.Parse("20060102T150405Z", got.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := http.NewRequest("POST", s.URL+"/a?b=c", nil)
	want.ContentLength = 4
	hash := sha256.Sum256([]byte("body"))
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: key}, want, hex.EncodeToString(hash[:]), "boxes", "eu-west-1", when); err != nil {
		t.Fatal(err)
	}
	if g, w := got.Header.Get("Authorization"), want.Header.Get("Authorization"); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	for name, bad := range map[string]*abi.Sign{
		"another kind": {Kind: "rsa"}, "a secret it was not given": {Kind: "sigv4", Service: "s", Region: "r", KeyID: "id", Key: "other"}, "no region": {Kind: "sigv4", Service: "s", KeyID: "id", Key: "key"},
	} {
		if a := send(t, c, abi.HTTPRequest{URL: s.URL, Sign: bad}); a.Error == nil || a.Error.Sent {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestAProviderKeepsALittleState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "acme.json")
	do := func(call_ abi.StateCall) abi.StateResult {
		return invoke[abi.StateResult](t, call(t, Grant{State: file}, Op{}), "state", call_)
	}
	if r := do(abi.StateCall{Fn: "get", Key: "a"}); r.Found || r.Error != nil {
		t.Errorf("before: %+v", r)
	}
	do(abi.StateCall{Fn: "set", Key: "a", Value: "1"})
	do(abi.StateCall{Fn: "set", Key: "b", Value: "2"})
	do(abi.StateCall{Fn: "delete", Key: "b"})
	if r := do(abi.StateCall{Fn: "get", Key: "a"}); r.Value != "1" || !r.Found {
		t.Errorf("kept: %+v", r)
	}
	if r := do(abi.StateCall{Fn: "get", Key: "b"}); r.Found {
		t.Errorf("deleted: %+v", r)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, bad := range map[string]abi.StateCall{
		"too much": {Fn: "set", Key: "c", Value: strings.Repeat("x", 64<<10)}, "no key": {Fn: "set"}, "no such thing": {Fn: "list", Key: "a"},
	} {
		if r := do(bad); r.Error == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := do(abi.StateCall{Fn: "get", Key: "a"}); r.Value != "1" {
		t.Errorf("after a refusal: %+v", r)
	}
	if err := os.WriteFile(file, []byte("null"), 0o600); err != nil { // no state at all
		t.Fatal(err)
	}
	if r := do(abi.StateCall{Fn: "set", Key: "a", Value: "2"}); r.Error != nil {
		t.Errorf("after null: %+v", r)
	}
	if r := invoke[abi.StateResult](t, call(t, Grant{}, Op{}), "state", abi.StateCall{Fn: "get", Key: "a"}); r.Error == nil || r.Error.Kind != "permission_denied" {
		t.Errorf("where none is kept: %+v", r)
	}
}
