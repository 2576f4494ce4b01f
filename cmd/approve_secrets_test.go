package cmd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A setting of a repository that makes git show what is in a file elsewhere is found.
func TestFilesThatGitShows(t *testing.T) {
	r := newGitRepo(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s.0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write(".git-blame-ignore-revs", "# none\n")
	r.git("config", "blame.ignoreRevsFile", ".git-blame-ignore-revs")
	if gitRuns(r.dir) {
		t.Error("a list in the repository counts as one elsewhere")
	}
	for _, value := range []string{token, "~/.vault-token", "../token", ".env"} {
		r.git("config", "blame.ignoreRevsFile", value)
		if !gitRuns(r.dir) {
			t.Errorf("%s is not found", value)
		}
	}
	if err := os.Symlink(token, filepath.Join(r.dir, "list")); err != nil {
		t.Skip("there are no links")
	}
	r.git("config", "blame.ignoreRevsFile", "list")
	if !gitRuns(r.dir) {
		t.Error("a link is not found")
	}
}

func TestSecretsBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		".env": "A=1\n", ".env.example": "A=\n", "main.tf": "x\n", "tls/server.pem": "-----BEGIN PRIVATE KEY-----\n", "tls/ca.pem": "-----BEGIN CERTIFICATE-----\n", ".git/x.key": "x\n", "a/b/terraform.tfstate": "{}\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.ToSlash(root)
	want := []string{at + "/.env", at + "/a/b/terraform.tfstate", at + "/tls/server.pem"}
	if got := secretsBelow("", root); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
