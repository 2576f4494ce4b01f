package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a user's home, a project, and what surrounds a run.
type world struct {
	t       *testing.T
	src     Sources
	env     map[string]string
	home    string
	project string
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	w := &world{t: t, env: map[string]string{}, home: filepath.Join(dir, "home", ".talkops"), project: filepath.Join(dir, "project")}
	for _, d := range []string{w.home, filepath.Join(w.project, ".git")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.src = Sources{
		Home: w.home, Dir: w.project, UserHome: filepath.Join(dir, "home"),
		Env:       func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		Flags:     map[string]string{},
		Providers: []string{"local", "modal", "daytona", "runloop", "langsmith", "agentcore", "vercel"},
	}
	return w
}

func (w *world) user(text string) { w.write(filepath.Join(w.home, "config.toml"), text) }
func (w *world) projectFile(text string) {
	w.write(filepath.Join(w.project, ".talkops", "config.toml"), text)
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// The rows are the precedence examples of the configuration reference.
func TestProviderPrecedence(t *testing.T) {
	const untrusted, unset = true, "\x00"
	for _, row := range []struct {
		name, flag, env, alias, project, user string
		untrusted                             bool
		want, err                             string
		asks                                  bool
	}{
		{name: "nothing set is local", flag: unset, env: unset, alias: unset, want: "local"},
		{name: "the user's default needs no flag", flag: unset, env: unset, alias: unset, user: `default = "modal"`, want: "modal"},
		{name: "a trusted project beats the user, across spellings", flag: unset, env: unset, alias: unset, project: `provider = "daytona"`, user: `default = "modal"`, want: "daytona"},
		{name: "the alias beats files", flag: unset, env: unset, alias: "runloop", project: `default = "daytona"`, want: "runloop"},
		{name: "the prefixed variable beats the alias", flag: unset, env: "vercel", alias: "runloop", want: "vercel"},
		{name: "a flag beats all", flag: "langsmith", env: "vercel", alias: "runloop", want: "langsmith"},
		{name: "a flag turns the sandbox off", flag: "local", env: "vercel", alias: unset, want: "local"},
		{name: "bare flag uses the default", flag: "", env: unset, alias: unset, user: `default = "modal"`, want: "modal"},
		{name: "bare flag without a default", flag: "", env: unset, alias: unset, err: "none is set"},
		{name: "bare flag and local", flag: "", env: "local", alias: unset, user: `default = "modal"`, err: `"local"`},
		{name: "bare flag and environment", flag: "", env: "agentcore", alias: unset, want: "agentcore"},
		{name: "empty variable", flag: unset, env: "", alias: unset, user: `default = "modal"`, err: "TALKOPS_SANDBOX_PROVIDER is set but empty"},
		{name: "unknown alias", flag: unset, env: unset, alias: "docker", user: `default = "modal"`, err: "SANDBOX_PROVIDER"},
		{name: "a hidden value is not judged", flag: unset, env: "modal", alias: "docker", want: "modal"},
		{name: "names are trimmed and lower-cased", flag: unset, env: " Modal ", alias: unset, want: "modal"},
		{name: "untrusted project may not switch to local", flag: unset, env: unset, alias: unset, project: `default = "local"`, user: `default = "modal"`, untrusted: untrusted, asks: true, want: "modal"},
		{name: "untrusted project may not choose", flag: unset, env: unset, alias: unset, project: `default = "modal"`, untrusted: untrusted, asks: true, want: "local"},
		{name: "overridden untrusted value is a warning", flag: "modal", env: unset, alias: unset, project: `default = "daytona"`, untrusted: untrusted, want: "modal"},
		{name: "untrusted value that changes nothing", flag: unset, env: unset, alias: unset, project: `default = "modal"`, user: `default = "modal"`, untrusted: untrusted, want: "modal"},
		{name: "misspelt", flag: "modla", env: unset, alias: unset, err: "Did you mean modal?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			switch row.flag {
			case unset:
			case "":
				w.src.Bare = true
			default:
				w.src.Flags["sandbox"] = row.flag
			}
			if row.env != unset {
				w.env["TALKOPS_SANDBOX_PROVIDER"] = row.env
			}
			if row.alias != unset {
				w.env["SANDBOX_PROVIDER"] = row.alias
			}
			if row.user != "" {
				w.user("[sandboxes]\n" + row.user + "\n")
			}
			if row.project != "" {
				w.projectFile("[sandboxes]\n" + row.project + "\n")
			}
			if !row.untrusted {
				w.src.Trust = Trusted
			}
			c, err := Load(w.src)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("error = %v, want one that says %q", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Sandbox.Provider != row.want || (len(c.Untrusted) > 0) != row.asks {
				t.Errorf("provider %q, asks for trust: %q; want %q, asks %v", c.Sandbox.Provider, c.Untrusted, row.want, row.asks)
			}
		})
	}
}

func TestBadInputIsOneClearLine(t *testing.T) {
	for _, row := range []struct {
		name, user, want string
		env, flags       map[string]string
	}{
		{name: "broken TOML names file, line and column", user: "[sandboxes]\ndefault = \n", want: "config.toml:2:"},
		{name: "unknown key in sandboxes", user: "[sandboxes]\nimagee = \"x\"\n", want: "did you mean sandboxes.image?"},
		{name: "two spellings contradict", user: "[sandboxes]\ndefault = \"modal\"\nprovider = \"daytona\"\n", want: "contradict"},
		{name: "wrong type", user: "[sandboxes]\nsync_workspace = \"maybe\"\n", want: "config.toml:2: sandboxes.sync_workspace"},
		{name: "not a boolean", env: map[string]string{"TALKOPS_SANDBOX_SYNC_WORKSPACE": "maybe"}, want: "TALKOPS_SANDBOX_SYNC_WORKSPACE"},
		{name: "out of range", flags: map[string]string{"max-turns": "0"}, want: "--max-turns: 0 is out of range"},
		{name: "id without a sandbox", flags: map[string]string{"sandbox-id": "sb-1"}, want: "--sandbox-id needs a sandbox"},
		{name: "setup without a sandbox", flags: map[string]string{"sandbox-setup": "x.sh"}, want: "this run is local"},
		{name: "keep without a sandbox", flags: map[string]string{"keep-sandbox": "true"}, want: "no sandbox to keep"},
		{name: "id and snapshot", flags: map[string]string{"sandbox": "langsmith", "sandbox-id": "x", "sandbox-snapshot-name": "y"}, want: "Use only one"},
		{name: "missing setup script", flags: map[string]string{"sandbox": "modal", "sandbox-setup": "./nope.sh"}, want: "setup script not found: ./nope.sh"},
		{name: "demanded sandbox", user: "[sandboxes]\nrequire = true\n", want: "config.toml:2"},
		{name: "Python class", user: "[sandboxes.providers.acme]\nbackend = \"acme.backend:Acme\"\n", want: "names a Python class"},
		{name: "provider that is not a table", user: "[sandboxes]\nproviders = 3\n", want: "must be a table"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			if row.user != "" {
				w.user(row.user)
			}
			if row.env != nil {
				w.env = row.env
			}
			if row.flags != nil {
				w.src.Flags = row.flags
			}
			_, err := Load(w.src)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error = %v, want one that says %q", err, row.want)
			}
		})
	}
}

func TestUntrustedProjectMayOnlyNarrow(t *testing.T) {
	w := newWorld(t)
	w.user("[sandboxes]\ndefault = \"modal\"\n[sync]\nexclude = [\"a\"]\n")
	w.projectFile(`[sandboxes]
sync_workspace = false
sandbox_id = "sb-1"
max_lifetime = "8h"
[sync]
exclude = ["b"]
max_file_bytes = 1000
[model.providers.evil]
base_url = "https://example.com"
`)
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	if c.Sandbox.SyncWorkspace || c.Sync.MaxFileBytes != 1000 || strings.Join(c.Sync.Exclude, ",") != "a,b" {
		t.Errorf("narrowing was not applied: %+v %+v", c.Sandbox, c.Sync)
	}
	if c.Sandbox.ID != "" || c.Sandbox.MaxLifetime.Hours() != 4 || len(c.Model.Providers) != 0 {
		t.Errorf("a project set what is the user's: %+v %+v", c.Sandbox, c.Model)
	}
	if len(c.Untrusted) != 0 || len(c.Warnings) != 3 {
		t.Errorf("untrusted %q, warnings %q; want none and three", c.Untrusted, c.Warnings)
	}
}

func TestOriginNamesLineAndHiddenValues(t *testing.T) {
	w := newWorld(t)
	w.user("# mine\n[sandboxes]\ndefault = \"modal\"\n")
	w.env["TALKOPS_SANDBOX_PROVIDER"] = "daytona"
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Value("sandbox.provider")
	if v.Origin.Where != "TALKOPS_SANDBOX_PROVIDER" || len(v.Hidden) != 2 || !strings.HasSuffix(v.Hidden[0].Origin.Where, "config.toml:3") {
		t.Errorf("got %+v", v)
	}
}

func TestHomeIsNeverAProject(t *testing.T) {
	w := newWorld(t)
	w.src.Dir = w.src.UserHome
	w.user("[sandboxes]\ndefault = \"modal\"\n")
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Unbounded || c.IsProject || c.Files.Project != "" {
		t.Errorf("got %+v", c)
	}
}

func TestSetKeepsTheRestOfTheFile(t *testing.T) {
	key, _ := Lookup("sandbox.provider")
	for _, row := range []struct{ name, before, after string }{
		{"new file", "", "[sandboxes]\ndefault = \"modal\"\n"},
		{"existing line", "# top\n[sandboxes]\n  default   = \"local\"   # why\nimage = \"x\"\n", "# top\n[sandboxes]\n  default   = \"modal\"   # why\nimage = \"x\"\n"},
		{"other spelling", "[sandboxes]\nprovider = 'local'\n", "[sandboxes]\nprovider = \"modal\"\n"},
		{"dotted key", "sandboxes.default = \"local\"\n", "sandboxes.default = \"modal\"\n"},
		{"inline table", "sandboxes = { default = \"local\", image = \"x\" }\n", "sandboxes = { default = \"modal\", image = \"x\" }\n"},
		{"added to an inline table", "sandboxes = { image = \"x\" }\n", "sandboxes = { image = \"x\", default = \"modal\" }\n"},
		{"quoted key", "[sandboxes]\n\"default\" = \"local\"\n", "[sandboxes]\n\"default\" = \"modal\"\n"},
		{"added to its table", "[sandboxes]\nimage = \"x\"\n\n[sync]\nexclude = [\"a\"]\n", "[sandboxes]\nimage = \"x\"\ndefault = \"modal\"\n\n[sync]\nexclude = [\"a\"]\n"},
		{"added beside dotted keys", "sandboxes.image = \"x\"\n", "sandboxes.image = \"x\"\nsandboxes.default = \"modal\"\n"},
		{"after a table", "[model]\ndefault = \"a:b\"\n", "[model]\ndefault = \"a:b\"\n\n[sandboxes]\ndefault = \"modal\"\n"},
		{"windows line ends", "[sandboxes]\r\nimage = \"x\"\r\n", "[sandboxes]\r\nimage = \"x\"\r\ndefault = \"modal\"\r\n"},
		{"no final newline", "[sandboxes]\ndefault = \"local\"", "[sandboxes]\ndefault = \"modal\""},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.toml")
			if row.before != "" {
				if err := os.WriteFile(path, []byte(row.before), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			if err := Set(path, key, "modal"); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			if string(got) != row.after {
				t.Errorf("got  %q\nwant %q", got, row.after)
			}
			info, _ := os.Stat(path)
			want := os.FileMode(0o600)
			if row.before != "" {
				want = 0o640
			}
			if info.Mode().Perm() != want {
				t.Errorf("mode %v, want %v", info.Mode().Perm(), want)
			}
		})
	}
}

func TestUnset(t *testing.T) {
	key, _ := Lookup("sandbox.provider")
	for before, after := range map[string]string{
		"[sandboxes]\n# a\ndefault = \"modal\" # b\nimage = \"x\"\n": "[sandboxes]\n# a\nimage = \"x\"\n",
		"sandboxes = { default = \"modal\", image = \"x\" }\n":       "sandboxes = { image = \"x\" }\n",
		"sandboxes = { image = \"x\", default = \"modal\" }\n":       "sandboxes = { image = \"x\" }\n",
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		os.WriteFile(path, []byte(before), 0o600)
		ok, err := Unset(path, key)
		got, _ := os.ReadFile(path)
		if err != nil || !ok || string(got) != after {
			t.Errorf("%q: got %q, %v, %v; want %q", before, got, ok, err, after)
		}
	}
}

func TestSetRefusesABrokenFile(t *testing.T) {
	key, _ := Lookup("sandbox.provider")
	path := filepath.Join(t.TempDir(), "config.toml")
	os.WriteFile(path, []byte("[broken\n"), 0o600)
	if err := Set(path, key, "modal"); err == nil {
		t.Error("a broken file was changed")
	}
	if got, _ := os.ReadFile(path); string(got) != "[broken\n" {
		t.Errorf("file is now %q", got)
	}
}

func TestSetKeepsASymlink(t *testing.T) {
	key, _ := Lookup("sandbox.provider")
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real.toml"), filepath.Join(dir, "config.toml")
	os.WriteFile(target, nil, 0o600)
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := Set(link, key, "modal"); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}
