//go:build unix

package sandbox_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, h := range headers {
		body := ""
		if h.Typeflag == tar.TypeReg {
			body = "content of " + h.Name
			h.Size = int64(len(body))
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(tw, body)
	}
	tw.Close()
	return b.Bytes()
}

// only makes a directory of commands with these alone.
func only(t *testing.T, commands ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, c := range commands {
		p, err := exec.LookPath(c)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(p, filepath.Join(dir, c)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUnpackWithAndWithoutTar(t *testing.T) {
	tree := archive(t,
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o750},
		tar.Header{Name: "d/run me", Typeflag: tar.TypeReg, Mode: 0o755},
		tar.Header{Name: "-x", Typeflag: tar.TypeReg, Mode: 0o640},
		tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "run me"})
	for name, path := range map[string]string{
		"with tar":    os.Getenv("PATH"),
		"without tar": only(t, "sh", "mkdir", "chmod", "ln", "rm", "mktemp"),
	} {
		t.Run(name, func(t *testing.T) {
			sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: t.TempDir(), Env: map[string]string{"PATH": path}})
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(sb.Info().Dir, "it's new")
			if err := sandbox.Unpack(t.Context(), sb, dir, bytes.NewReader(tree)); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "d/link"))
			if err != nil || string(got) != "content of d/run me" {
				t.Errorf("through the link: %q, %v", got, err)
			}
			for file, want := range map[string]os.FileMode{"d": 0o750, "d/run me": 0o755, "-x": 0o640} {
				if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v; want %v", file, info, err, want)
				}
			}
		})
	}
}

func TestUnpackWithoutTarStaysInside(t *testing.T) {
	sb, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: t.TempDir(), Env: map[string]string{"PATH": only(t, "sh", "mkdir", "chmod", "ln", "rm")}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(sb.Info().Dir, "in")
	err = sandbox.Unpack(t.Context(), sb, dir, bytes.NewReader(archive(t, tar.Header{Name: "../out", Typeflag: tar.TypeReg, Mode: 0o644})))
	if sandbox.CodeOf(err) != sandbox.CodeInvalidPath {
		t.Errorf("error %v, want invalid_path", err)
	}
	if _, err := os.Stat(filepath.Join(sb.Info().Dir, "out")); err == nil {
		t.Error("a file was written outside")
	}
}

func TestQuoteIsReadBackByTheShell(t *testing.T) {
	args := []string{"", "plain", "a b", "it's", `"`, "$HOME", "`id`", "a\nb\tc", `\`, "*", "-n", "\xff\x01", "日本語", "~", "#x", "a=b"}
	out, err := exec.Command("sh", "-c", "printf '%s\\0' "+sandbox.Quote(args...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); strings.Join(got, "\x00") != strings.Join(args, "\x00") {
		t.Errorf("got %q\nwant %q", got, args)
	}
}
