package redact_test

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/redact"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const key = "sk-acme/0123+abcDEF=99?x&y"

var pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END KEY-----\n"

func ExampleRedactor_Writer() {
	var out strings.Builder
	w := redact.New("hunter2-hunter2").Writer(&out)
	io.WriteString(w, "the password is hunter2")
	io.WriteString(w, "-hunter2.\n")
	w.Close()
	fmt.Print(out.String())
	// Output: the password is ***secret***.
}

// Every way in which a secret may be written, each in some text around it.
func written() map[string]string {
	escaped, _ := json.Marshal(key)
	all := map[string]string{
		"plain":                  key,
		"JSON":                   string(escaped),
		"an address":             "https://acme.com/?k=" + url.QueryEscape(key) + "&z=1",
		"a path":                 "https://acme.com/" + url.PathEscape(key),
		"an address, lower case": "k=" + strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%3F", "%3f").Replace(url.QueryEscape(key)),
		"base64":                 base64.StdEncoding.EncodeToString([]byte(key)),
		"base64 of a line":       base64.StdEncoding.EncodeToString([]byte(key + "\n")),
		"base64url":              base64.URLEncoding.EncodeToString([]byte(key)),
		"base64url, unpadded":    base64.RawURLEncoding.EncodeToString([]byte(key)),
		"a line of a key":        "| AASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
		"hexadecimal":            hex.EncodeToString([]byte(key)),
		"hexadecimal, capitals":  strings.ToUpper(hex.EncodeToString([]byte(key))),
		"base32":                 base32.StdEncoding.EncodeToString([]byte(key)),
		"backwards":              backwards(key),
	}
	for i := range 3 { // as in the header of a user name and password
		all[fmt.Sprintf("inside base64, %d", i)] = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", i) + ":" + key + ":more"))
	}
	return all
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// leaks reports whether text still holds most of the secret.
func leaks(text string) bool {
	for _, w := range []string{key[:16], "0123+abcDEF", base64.StdEncoding.EncodeToString([]byte(key))[4:20], backwards(key)[:16], hex.EncodeToString([]byte(key))[:24], strings.ToUpper(hex.EncodeToString([]byte(key)))[:24], base32.StdEncoding.EncodeToString([]byte(key))[:20], "AASCBKcwggSj", url.QueryEscape(key)[8:20]} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func TestEveryFormIsBlottedOut(t *testing.T) {
	r := redact.New(key, pem)
	for name, text := range written() {
		if got := r.Text(text); !strings.Contains(got, redact.Mark) || leaks(got) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

// However the text is cut, what comes out is what would come out of it whole.
func TestStreamIsTheSameAsWhole(t *testing.T) {
	secrets := []string{key, pem, "abcdef", "abcdefghij", "cdefgh-tail", "aaaaaab", "ababababac"}
	r := redact.New(secrets...)
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := append([]string{"a", "ab", "abcde", "aaaaa", "\n", "x", "abab", "sk-", "sk-acme/0123", "***"}, secrets...)
	for _, w := range written() {
		pieces = append(pieces, w)
	}
	for range 3000 {
		var b strings.Builder
		for range 1 + rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		whole := b.String()
		want := r.Text(whole)
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := whole; rest != ""; {
			n := 1 + rng.IntN(min(len(rest), 9))
			io.WriteString(w, rest[:n])
			rest = rest[n:]
		}
		w.Close()
		if out.String() != want {
			t.Fatalf("%q in pieces became %q, whole %q", whole, out.String(), want)
		}
	}
}

func TestCutInTheMiddle(t *testing.T) {
	r := redact.New(key)
	got := r.Before(" [cut]", "a "+key[:12]+" [cut]\nb "+key+" [cut]\nc "+key[:5]+" [cut]\n"+key[:12])
	want := "a " + redact.Mark + " [cut]\nb " + redact.Mark + " [cut]\nc " + key[:5] + " [cut]\n" + key[:12]
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongestFirst(t *testing.T) {
	r := redact.New("abcdef", "abcdefghij")
	if got := r.Text("abcdefghij abcdefg"); got != redact.Mark+" "+redact.Mark+"g" {
		t.Errorf("got %q", got)
	}
}

// What is not a secret stays as it is.
func TestNothingElseIsTouched(t *testing.T) {
	r := redact.New(key, pem, "", "short", "     ", "true")
	for _, text := range []string{
		"short and true", "sk- is the beginning of a key", "4469ec0a1b2c3d4e5f60718293a4b5c6d7e8f901", "8f14e45f-ceea-467f-a0e6-6b2f9c1a7d31",
		"h1:2z0qYQ0m0TnG0d8Xw5Zr3u0p1n9C4k7JmVb6LxQeR1s=", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "-----BEGIN KEY-----",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none *redact.Redactor
	if none.Text(key) != key || redact.New() != nil {
		t.Error("without secrets something is blotted out")
	}
}

func TestJSONStaysValid(t *testing.T) {
	r := redact.New("nabcdef", key)
	in := map[string]any{"a": "line\nabcdef", "b": "nabcdef", "c": []any{1.5, key + `"` + key}, key: true}
	b, _ := json.Marshal(in)
	var out map[string]any
	if err := json.Unmarshal(r.JSON(b), &out); err != nil {
		t.Fatal(err)
	}
	if out["a"] != "line\nabcdef" || out["b"] != redact.Mark || out[redact.Mark] != true || leaks(fmt.Sprint(out)) {
		t.Errorf("got %v", out)
	}
}

// reader is a tool that shows a secret in every way it can.
type reader struct{ tool.Tool }

func (reader) Plan(string) (tool.Plan, error) { return tool.Plan{Effect: tool.Writes}, nil }
func (reader) Run(_ context.Context, _ string, emit func(tool.Output)) (tool.Result, error) {
	emit(tool.Output{Data: []byte("a " + key[:10])})
	emit(tool.Output{Data: []byte("out of step"), Stderr: true})
	emit(tool.Output{Data: []byte(key[10:])})
	return tool.Result{Text: "it is " + key}, nil
}

func TestTools(t *testing.T) {
	x := redact.New(key).Tools([]tool.Tool{reader{}})[0]
	var stdout string
	r, err := x.Run(t.Context(), "{}", func(o tool.Output) {
		if !o.Stderr {
			stdout += string(o.Data)
		}
	})
	if err != nil || r.Text != "it is "+redact.Mark || stdout != "a "+redact.Mark {
		t.Errorf("%q, %q, %v", r.Text, stdout, err)
	}
	if _, err := x.Plan(`{"content":"password = ` + redact.Mark + `"}`); sandbox.CodeOf(err) != sandbox.CodeInvalidArgument {
		t.Errorf("the mark may be written to a file: %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add("x"+key+"y", 3)
	r := redact.New(key, "abcdef", "bcdefghi")
	f.Fuzz(func(t *testing.T, text string, n int) {
		s := r.Stream()
		at := 0
		if len(text) > 0 {
			at = ((n % len(text)) + len(text)) % len(text)
		}
		got := string(s.Next([]byte(text[:at]))) + string(s.Next([]byte(text[at:]))) + string(s.Rest())
		if want := r.Text(text); got != want {
			t.Errorf("%q cut at %d became %q, whole %q", text, at, got, want)
		}
	})
}

// BenchmarkWriter is text of a build through 20 secrets; the second is copying it.
func BenchmarkWriter(b *testing.B) {
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, fmt.Sprintf("sk-%d-%s", i, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(i * 7), 'x', byte(i)}, 10))))
	}
	r := redact.New(secrets...)
	line := []byte(strings.Repeat("2026-11-30T09:00:00Z module.network.aws_subnet.private[0]: Creation complete after 2s [id=subnet-0a1b2c3d]\n", 300))
	b.Run("redact", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		w := r.Writer(io.Discard)
		for b.Loop() {
			w.Write(line)
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		var buf bytes.Buffer
		for b.Loop() {
			buf.Reset()
			buf.Write(line)
		}
	})
}
