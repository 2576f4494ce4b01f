//go:build linux && (amd64 || arm64)

package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/talkops-ai/talkops/runtime/wasm/wasmtest"
	"github.com/talkops-ai/talkops/sdk/practice"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

var guests = flag.Bool("guests", false, "every language, not Go alone; a compiler that is missing is a failure")

// TestKits tells the story of testdata/kits in every language, which is named in
// $LANGUAGE, and looks at what its provider can do beyond the contract.
func TestKits(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("the whole contract, through the wall, in every language")
			}
			missing(t, l)
			built := t.TempDir()
			t.Run("story", func(t *testing.T) {
				p := practiced(func(e *testscript.Env) error {
					e.Setenv("LANGUAGE", l.name)
					e.Setenv("BUILT", built)
					e.Setenv("SDK", "--sdk=")
					e.Setenv("TMPDIR", os.TempDir()) // the practice service's boxes have a user of their own
					home, err := os.UserHomeDir()
					e.Setenv("RUSTUP_HOME", cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup")))
					if l.name == "go" {
						e.Setenv("SDK", "--sdk="+root)
						for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
							out, err := exec.Command("go", "env", name).Output()
							if err != nil {
								return err
							}
							e.Setenv(name, strings.TrimSpace(string(out)))
						}
					}
					return err
				})
				p.Dir = filepath.Join("..", "testdata", "kits")
				testscript.Run(t, p)
			})
			if !t.Failed() {
				abilities(t, filepath.Join(built, "mine.wasm"))
			}
		})
	}
}

// abilities holds the tutorial's provider to what the contract leaves open.
func abilities(t *testing.T, file string) {
	s, err := practice.Start(practice.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	p := wasmtest.Load(t, "mine", file, s.URL())
	first := sandbox.Spec{Settings: s.Settings(), Labels: map[string]string{"run": "a b&c"}, Lifetime: 90 * time.Minute}
	sb := opened(t, p, first)
	dir := sb.Info().Dir

	t.Run("a machine is listed with its times", func(t *testing.T) {
		list, err := sandbox.List(ctx, p, first)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		got := list[0]
		if got.ID != sb.Info().ID || got.Labels["run"] != "a b&c" || got.State == "" {
			t.Errorf("listed is %+v", got)
		}
		if lives := got.Expires.Sub(got.Created); lives != first.Lifetime {
			t.Errorf("it lives for %v, want %v", lives, first.Lifetime)
		}
		if !got.Expires.Equal(sb.Info().Expires) || time.Until(got.Expires) > first.Lifetime {
			t.Errorf("it expires at %v, opening said %v", got.Expires, sb.Info().Expires)
		}
	})
	t.Run("a snapshot is opened again", func(t *testing.T) {
		if err := sb.WriteFile(ctx, dir+"/kept", strings.NewReader("still here"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Snapshot(ctx, sb, "a \"name\"\n"); err != nil {
			t.Fatal(err)
		}
		spec := first
		spec.Snapshot = "a \"name\"\n"
		again := opened(t, p, spec)
		var out strings.Builder
		if err := again.ReadFile(ctx, again.Info().Dir+"/kept", &out); err != nil || out.String() != "still here" {
			t.Errorf("read %q, %v", out.String(), err)
		}
		spec.Snapshot = "no such"
		if _, err := p.Open(ctx, spec); sandbox.CodeOf(err) != sandbox.CodeNotFound || !strings.Contains(err.Error(), "no such") {
			t.Errorf("from a missing snapshot: %v", err)
		}
	})
	t.Run("a command is killed by its id", func(t *testing.T) {
		r, w := io.Pipe()
		exit := make(chan int, 1)
		go func() {
			n, _ := sb.Exec(ctx, sandbox.Cmd{ID: "the/one", Args: []string{"/bin/sh", "-c", "echo go; exec sleep 600"}, Stdout: w})
			exit <- n
		}()
		if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Kill(ctx, sb, "the/one"); err != nil {
			t.Fatal(err)
		}
		if n := <-exit; n < 128 {
			t.Errorf("it ended with %d", n)
		}
	})
	t.Run("the wanted directory is made, also when attaching twice", func(t *testing.T) {
		spec := first
		spec.ID, spec.Dir = sb.Info().ID, dir+"/wanted ünd 'odd"
		for range 2 {
			if got := opened(t, p, spec).Info().Dir; got != spec.Dir {
				t.Errorf("it is %q, want %q", got, spec.Dir)
			}
		}
		spec.Dir = "/proc/none/here"
		if got := opened(t, p, spec).Info().Dir; got != dir {
			t.Errorf("instead of one that cannot be made it is %q, want %q", got, dir)
		}
	})
	t.Run("names and words keep their bytes", func(t *testing.T) {
		name := dir + "/\xff\xfe 😀"
		if err := sb.WriteFile(ctx, name, strings.NewReader("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := sb.ReadFile(ctx, name, &out); err != nil || out.String() != "x" {
			t.Errorf("read %q, %v", out.String(), err)
		}
		words := []string{"😀\u2028\x01\x7f", "\\u0041", "é", "\t"}
		out.Reset()
		exit, err := sb.Exec(ctx, sandbox.Cmd{Args: append([]string{"printf", "[%s]"}, words...), Stdout: &out})
		if want := "[" + strings.Join(words, "][") + "]"; exit != 0 || err != nil || out.String() != want {
			t.Errorf("%d, %v, %q, want %q", exit, err, out.String(), want)
		}
	})
	t.Run("the key is refused in the service's words", func(t *testing.T) {
		spec := first
		spec.Settings = map[string]string{"api_key": "wrong-key", "api_url": s.URL()}
		if _, err := p.Open(ctx, spec); sandbox.CodeOf(err) != sandbox.CodeUnauthenticated || !strings.Contains(err.Error(), "the API key is not valid") {
			t.Errorf("error is %v", err)
		}
	})
	if n := len(slices.Compact(s.Boxes())); n != 2 {
		t.Errorf("%d boxes were made, want 2", n)
	}
}

func opened(t *testing.T, p sandbox.Provider, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := p.Open(context.WithoutCancel(t.Context()), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// TestKitsInPieces builds the providers of testdata/kits/pieces, whose bytes go
// through the module, and uses every part of a kit that the tutorial leaves out.
func TestKitsInPieces(t *testing.T) {
	const large = 72 << 20 // more than a module may have of memory
	got := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) { io.CopyN(w, rand.NewChaCha8([32]byte{}), large) })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "event: a\ndata: one\n\n: a comment\ndata: tw\ndata: o \"ü\"\n\n")
	})
	mux.HandleFunc("PUT /put", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if n == 3 {
			w.WriteHeader(http.StatusInsufficientStorage)
		}
		got <- fmt.Sprintf("%d %x %v", n, sum.Sum(nil), err)
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", "yes")
		io.Copy(w, r.Body)
	})
	service := httptest.NewServer(mux)
	defer service.Close()
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			if l.name == "go" {
				t.Skip("its kit is not a copy: sdk/guest, held by the providers of wasm-providers")
			}
			if testing.Short() {
				t.Skip("large bodies, through every module")
			}
			missing(t, l)
			dir := t.TempDir()
			files, err := l.files("pieces")
			if err != nil {
				t.Fatal(err)
			}
			main, err := os.ReadFile(filepath.Join("..", "testdata", "kits", "pieces", l.name, l.main))
			if err != nil {
				t.Fatal(err)
			}
			files[l.main] = string(main)
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(dir, "pieces.wasm")
			build := l.build(t.Context(), dir, file)
			build.Dir = dir
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p := wasmtest.Load(t, "pieces", file, service.URL)
			inPieces(t, p, service.URL, large, got)
		})
	}
}

func inPieces(t *testing.T, p sandbox.Provider, url string, large int64, got <-chan string) {
	ctx := t.Context()
	told := ""
	spec := sandbox.Spec{
		Settings: map[string]string{"api_url": url, "api_key": "a secret key"},
		Options:  map[string]any{"a": []any{}, "b": map[string]any{}, "c": []any{nil, true, false, -1.5e+30, 12, "q\"\\\x01\u2028 😀 é"}, "d": map[string]any{"e": "f"}},
		Progress: func(s string) { told = s },
	}
	sb := opened(t, p, spec)
	if told != "halfway" {
		t.Errorf("progress was told %q", told)
	}

	random := rand.NewChaCha8([32]byte{})
	in, out, words := new(bytes.Buffer), new(bytes.Buffer), new(bytes.Buffer)
	io.CopyN(in, random, 1<<20)
	want := bytes.Clone(in.Bytes())
	exit, err := sb.Exec(ctx, sandbox.Cmd{Args: []string{"\xff\xfe\x7fab"}, Stdin: in, Stdout: out, Stderr: words})
	if exit != 3 || err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("exit %d, %v, %d bytes of %d", exit, err, out.Len(), len(want))
	}
	told, coded, _ := strings.Cut(words.String(), "\n")
	mac := hmac.New(sha256.New, []byte("a secret key"))
	io.WriteString(mac, "what is signed")
	if want := fmt.Sprintf("%s\n%x\n", base64.StdEncoding.EncodeToString([]byte("\xff\xfe\x7fab")), mac.Sum(nil)); coded != want {
		t.Errorf("base64 and HMAC are %q, want %q", coded, want)
	}
	var options map[string]any
	wrote, _ := json.Marshal(spec.Options)
	var wanted map[string]any
	json.Unmarshal(wrote, &wanted)
	if err := json.Unmarshal([]byte(told), &options); err != nil || !reflect.DeepEqual(options, wanted) {
		t.Errorf("options came back as %s, %v", told, err)
	}

	stopped, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if exit, err := sb.Exec(stopped, sandbox.Cmd{Args: []string{"sleep"}}); exit != sandbox.ExitTimeout || sandbox.CodeOf(err) != sandbox.CodeTimeout {
		t.Errorf("stopped while asleep: %d, %v", exit, err)
	}

	sum := sha256.New()
	if err := sb.ReadFile(ctx, "/large", sum); err != nil {
		t.Errorf("read: %v", err)
	}
	all := sha256.New()
	io.CopyN(all, rand.NewChaCha8([32]byte{}), large)
	if !bytes.Equal(sum.Sum(nil), all.Sum(nil)) {
		t.Error("what was read differs")
	}
	out.Reset()
	if err := sb.ReadFile(ctx, "/events", out); err != nil || out.String() != "onetw\no \"ü\"" {
		t.Errorf("events: %q, %v", out, err)
	}
	if err := sb.ReadFile(ctx, "/none", out); sandbox.CodeOf(err) != sandbox.CodeFileNotFound || !strings.Contains(err.Error(), "page not found") {
		t.Errorf("a missing file: %v", err)
	}
	if err := sb.WriteFile(ctx, "/f", bytes.NewReader(want), 0o644); err != nil {
		t.Errorf("write: %v", err)
	}
	if what, want := <-got, fmt.Sprintf("%d %x <nil>", len(want), sha256.Sum256(want)); what != want {
		t.Errorf("the service got %s, want %s", what, want)
	}
	if err := sb.WriteFile(ctx, "/f", strings.NewReader("abc"), 0o644); sandbox.CodeOf(err) != sandbox.CodeNoSpace {
		t.Errorf("a refused write: %v", err)
	}
	<-got
	spec.ID = sb.Info().ID
	if err := p.Destroy(ctx, spec); err != nil {
		t.Errorf("destroy: %v", err)
	}
}

// missing skips a language that is not to be tried now.
func missing(t *testing.T, l language) {
	t.Helper()
	if l.name != "go" && !*guests {
		t.Skip("make test-guests tries it")
	}
	if l.build(t.Context(), t.TempDir(), "x") == nil {
		t.Fatalf("missing: %s", l.needs)
	}
}
