package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

func TestChangesAtTheSameTimeLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	var wg sync.WaitGroup
	n := 0
	for _, k := range Keys() {
		if k.Kind != Int {
			continue
		}
		n++
		wg.Go(func() {
			if err := Set(path, k, int64(5000)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, _ := os.ReadFile(path)
	if got := strings.Count(string(data), "= 5000\n"); got != n {
		t.Errorf("%d of %d changes are in the file:\n%s", got, n, data)
	}
}

func TestSetFollowsALinkToAFileThatIsMissing(t *testing.T) {
	key, _ := Lookup("sandbox.provider")
	dir := t.TempDir()
	link := filepath.Join(dir, "config.toml")
	if err := os.Symlink("real.toml", link); err != nil {
		t.Skip(err)
	}
	if err := Set(link, key, "modal"); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if _, err := os.Stat(filepath.Join(dir, "real.toml")); err != nil {
		t.Error(err)
	}
	os.Remove(link)
	os.Symlink("config.toml", link)
	if err := Set(link, key, "modal"); err == nil {
		t.Error("a link to itself was written through")
	}
}

func TestReplaceSeesWhatOthersDid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	os.WriteFile(path, []byte("# new\n"), 0o640)
	if err := Replace(path, []byte("# old\n"), []byte("# mine\n")); err != ErrChanged {
		t.Errorf("err = %v, want ErrChanged", err)
	}
	if err := Replace(path, []byte("# new\n"), []byte("# mine\n")); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "# mine\n" {
		t.Errorf("got %q", got)
	}
}

// Every key can be written, is read back as the same value, and is taken out
// again without a trace.
func TestEveryKeyIsWrittenAndReadBack(t *testing.T) {
	samples := map[Kind]string{String: `a "b"\c`, Bool: "on", Int: "5000", Number: "0.25", Duration: "90m", List: `a b,"c",\d`}
	keys := Keys()
	for _, k := range TableKeys() {
		keys = append(keys, k.of("mine"))
	}
	for _, k := range keys {
		t.Run(k.Name, func(t *testing.T) {
			text := samples[k.Kind]
			if len(k.Enum) > 0 {
				text = k.Enum[0]
			}
			if k.Kind == Int && k.Max > 0 && k.Max < 5000 {
				text = "7"
			}
			want, err := k.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range append([]string{k.Name}, k.Paths...) {
				if found, ok := Lookup(name); !ok || found.Name != k.Name {
					t.Errorf("%s is not found by %s", k.Name, name)
				}
			}
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := Set(path, k, want); err != nil {
				t.Fatal(err)
			}
			data, _ := os.ReadFile(path)
			f, err := parse(path, data)
			if err != nil {
				t.Fatal(err)
			}
			got, ok, err := fromFile(k, f, LayerUser)
			if err != nil || !ok || Format(got.value) != Format(want) {
				t.Errorf("got %v, %v, %v; want %v from\n%s", got.value, ok, err, want, data)
			}
			if ok, err := Unset(path, k); !ok || err != nil {
				t.Errorf("Unset: %v, %v", ok, err)
			}
			if data, _ = os.ReadFile(path); strings.Contains(string(data), "=") {
				t.Errorf("left over:\n%s", data)
			}
		})
	}
}

// Every key that a project may set after approval is announced by its effect, and
// no key of the user's is ever taken from it.
func TestEveryKeyHasItsScope(t *testing.T) {
	samples := map[Kind]any{String: "x", Bool: true, Int: int64(7), Number: 0.5, Duration: "90m", List: []string{"x"}}
	for _, k := range Keys() {
		t.Run(k.Name, func(t *testing.T) {
			w := newWorld(t)
			value := samples[k.Kind]
			switch {
			case k.Name == "sandbox.provider":
				value = "modal"
			case k.Name == "sandbox.setup_script_path":
				value = "setup.sh"
				w.write(filepath.Join(w.project, "setup.sh"), "true\n")
			case len(k.Enum) > 0:
				value = k.Enum[len(k.Enum)-1]
			case k.Kind == Int && k.Min > 7:
				value = int64(k.Min)
			}
			w.projectFile("x = 1\n")
			path := filepath.Join(w.project, ".talkops", "config.toml")
			if v, ok := value.(string); ok && k.Kind == Duration {
				value, _ = k.Parse(v)
			}
			if err := Set(path, k, value); err != nil {
				t.Fatal(err)
			}
			p, err := ReadProject(w.src)
			if err != nil {
				t.Fatal(err)
			}
			asks := slices.Contains(p.Keys(), k.Name)
			if wants := k.Scope == ScopeTrust || k.Scope == ScopeFreeFalse; asks != wants {
				t.Errorf("announced: %v, want %v", asks, wants)
			}
			for _, trust := range []Trust{Untrusted, Trusted} {
				w.src.Trust = trust
				w.src.Flags = map[string]string{}
				if k.Name != "sandbox.provider" {
					w.src.Flags["sandbox"] = "modal"
				}
				c, err := Load(w.src)
				if err != nil {
					t.Fatal(err)
				}
				from := c.Value(k.Name).Origin.Layer == LayerProject
				switch k.Scope {
				case ScopeUser:
					if from || !strings.Contains(strings.Join(c.Warnings, "\n"), k.Name+" is yours to set") {
						t.Errorf("trust %v: taken from the project: %v, warnings %q", trust, from, c.Warnings)
					}
				case ScopeTrust:
					if from != (trust == Trusted) || trust == Untrusted && len(c.Untrusted) == 0 {
						t.Errorf("trust %v: taken from the project: %v; it would %q", trust, from, c.Untrusted)
					}
				case ScopeFree, ScopeFreeTrue:
					if !from {
						t.Errorf("trust %v: not taken from the project", trust)
					}
				}
			}
		})
	}
}

// Exactly the bytes that were approved are used.
func TestApprovedBytesAreTheOnesThatRun(t *testing.T) {
	w := newWorld(t)
	w.projectFile("[sandboxes]\ndefault = \"modal\"\nsetup_script_path = \"setup.sh\"\n")
	script := filepath.Join(w.project, "setup.sh")
	w.write(script, "echo approved\n")
	asked := 0
	w.src.Approved = func(root string, files map[string][]byte, keys []string) (bool, error) {
		asked++
		if string(files["setup.sh"]) != "echo approved\n" || len(files) != 2 || strings.Join(keys, " ") != "sandbox.provider sandbox.setup_script_path" {
			t.Errorf("asked about %q, %q", files, keys)
		}
		// Somebody swaps both files between the check and the use.
		w.write(script, "echo swapped\n")
		w.projectFile("[sandboxes]\ndefault = \"daytona\"\n")
		return true, nil
	}
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || string(c.Sandbox.Setup) != "echo approved\n" || c.Sandbox.Provider != "modal" || len(c.Untrusted) != 0 {
		t.Errorf("asked %d times; script %q, provider %s, untrusted %q", asked, c.Sandbox.Setup, c.Sandbox.Provider, c.Untrusted)
	}
}

func TestTablesOfBothFilesMerge(t *testing.T) {
	w := newWorld(t)
	w.user("[sandboxes.providers.modal]\nworking_dir = \"/a\"\noptions = { cpu = 1, gpu = \"x\" }\n")
	w.projectFile("[sandboxes.providers.modal]\noptions = { cpu = 2 }\n")
	w.src.Trust = Trusted
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Providers["modal"]
	if p.WorkingDir != "/a" || p.Options["cpu"] != int64(2) || p.Options["gpu"] != "x" {
		t.Errorf("got %+v", p)
	}
}

// The project is the nearest directory with a mark, never the home directory or
// one above it, and never talkops' own.
func TestProjectRoot(t *testing.T) {
	for _, row := range []struct {
		name, mark, dir, root, start string
		unbounded                    bool
	}{
		{name: "a mark here", mark: "work/shop/.talkops/", dir: "work/shop", root: "work/shop", start: "."},
		{name: "a mark above", mark: "work/shop/.git/", dir: "work/shop/a/b", root: "work/shop", start: "a/b"},
		{name: "a work tree's mark is a file", mark: "work/shop/.git", dir: "work/shop/a", root: "work/shop", start: "a"},
		{name: "the nearer mark", mark: "work/shop/a/.talkops/", dir: "work/shop/a/b", root: "work/shop/a", start: "b"},
		{name: "no mark", dir: "work/plain", root: "work/plain", start: "."},
		{name: "a marked home", mark: "home/.git/", dir: "home", root: "home", start: ".", unbounded: true},
		{name: "below a marked home", mark: "home/.git/", dir: "home/x", root: "home/x", start: "."},
		{name: "above the home", dir: ".", root: ".", start: ".", unbounded: true},
		{name: "talkops' own directory marks nothing", dir: "home/.talkops/x", root: "home/.talkops/x", start: "."},
	} {
		t.Run(row.name, func(t *testing.T) {
			base, _ := filepath.EvalSymlinks(t.TempDir())
			for _, d := range []string{"home/.talkops", "work/shop/a/b", row.dir, row.mark} {
				if d = filepath.FromSlash(d); strings.HasSuffix(row.mark, "/") || d != row.mark {
					os.MkdirAll(filepath.Join(base, d), 0o700)
				} else if d != "" {
					os.WriteFile(filepath.Join(base, d), []byte("gitdir: x\n"), 0o600)
				}
			}
			c := &Config{}
			c.findRoot(Sources{Home: filepath.Join(base, "home", ".talkops"), UserHome: filepath.Join(base, "home"), Dir: filepath.Join(base, row.dir)})
			if c.Root != filepath.Join(base, row.root) || filepath.ToSlash(c.Start) != row.start || c.Unbounded != row.unbounded {
				t.Errorf("root %s, start %s, unbounded %v; want %s, %s, %v", c.Root, c.Start, c.Unbounded, row.root, row.start, row.unbounded)
			}
		})
	}
}

// Each source of a key counts: its variables, its flag, and the files.
func TestEverySourceOfEveryKey(t *testing.T) {
	for _, k := range Keys() {
		text := map[Kind]string{String: "x", Bool: "yes", Int: "7", Number: "0.5", Duration: "90s", List: "x,y"}[k.Kind]
		switch {
		case k.Name == "sandbox.provider":
			text = "modal"
		case len(k.Enum) > 0:
			text = k.Enum[1]
		case k.Kind == Int && k.Min > 7:
			text = Format(int64(k.Min))
		}
		want, err := k.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range append(slices.Clone(k.Env), "--"+k.Flag) {
			if source == "--" {
				continue
			}
			t.Run(k.Name+" "+source, func(t *testing.T) {
				w := newWorld(t)
				w.src.Flags["sandbox"] = "modal"
				if k.Name == "sandbox.provider" {
					delete(w.src.Flags, "sandbox")
				}
				if k.Name == "sandbox.setup_script_path" {
					w.write(filepath.Join(w.project, "x"), "true\n")
				}
				if flag, ok := strings.CutPrefix(source, "--"); ok {
					w.src.Flags[flag] = text
				} else {
					w.env[source] = text
				}
				c, err := Load(w.src)
				if err != nil {
					t.Fatal(err)
				}
				if v := c.Value(k.Name); v.Origin.Where != source || Format(v.Value) != Format(want) && !k.Joins {
					t.Errorf("got %v from %s, want %v from %s", v.Value, v.Origin, want, source)
				}
				w.env[source] = ""
				if k.Name != "sandbox.provider" && !strings.HasPrefix(source, "--") {
					if c, err = Load(w.src); err != nil || c.Value(k.Name).Origin.Where == source {
						t.Errorf("an empty %s counts as set: %v", source, err)
					}
				}
			})
		}
	}
}

// The schema knows every place at which a setting may stand, and nothing else.
func TestSchemaKnowsEverySetting(t *testing.T) {
	data, err := json.Marshal(Schema([]string{"local", "modal"}))
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	find := func(path string) map[string]any {
		at := root
		for part := range strings.SplitSeq(path, ".") {
			properties, _ := at["properties"].(map[string]any)
			next, ok := properties[part].(map[string]any)
			if !ok {
				next, _ = at["additionalProperties"].(map[string]any)
			}
			at = next
		}
		return at
	}
	for _, k := range append(Keys(), TableKeys()...) {
		for _, p := range k.Paths {
			s := find(strings.ReplaceAll(p, "<name>", "mine"))
			if s["type"] == nil || s["description"] == nil {
				t.Errorf("%s: got %v", p, s)
			}
		}
	}
	for _, p := range []string{"sandboxes.defualt", "nonsense", "sandboxes.providers.mine.x"} {
		if find(p) != nil {
			t.Errorf("%s is in the schema", p)
		}
	}
	if s := find("run.max_turns"); s["minimum"] != 1.0 || s["default"] != 50.0 || s["type"] != "integer" {
		t.Errorf("run.max_turns: %v", s)
	}
}

func TestLimitsOfModulesAreWithinBounds(t *testing.T) {
	for line, want := range map[string]string{
		"limits = 3": "must be a table", "limits.concurrency = 17": "concurrency", "limits.compile_s = 0": "compile_s", "limits.log_kb = \"much\"": "log_kb",
		"limits.http_inline_kb = 513": "http_inline_kb", "limits.speed = 1": "unknown key",
	} {
		w := newWorld(t)
		w.user("[sandboxes.providers.acme]\nbackend = \"acme.wasm\"\n" + line + "\n")
		if _, err := Load(w.src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// What a module may touch is the user's to say; a project can only pin it.
func TestGrantsComeFromTheUserAlone(t *testing.T) {
	w := newWorld(t)
	sum := strings.Repeat("ab", 32)
	w.user("[sandboxes.providers.acme]\nbackend = \"acme.wasm\"\nallow_hosts = [\"api.acme.example\"]\nenv = [\"ACME_API_KEY\"]\nmemory_mb = 32\nallow_paths = [{ name = \"a\", path = \"~/acme\" }]\nlimits = { concurrency = 4 }\n")
	w.projectFile("[sandboxes.providers.acme]\nsha256 = \"" + sum + "\"\nallow_hosts = [\"evil.example\"]\nenv = [\"HOME\"]\nmemory_mb = 1024\nallow_paths = [{ name = \"b\", path = \"/\", mode = \"rw\" }]\n[sandboxes.providers.acme.limits]\nconcurrency = 16\ncompile_s = 60\n")
	w.src.Trust = Trusted
	c, err := Load(w.src)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Providers["acme"]
	if p.SHA256 != sum || p.Project || !slices.Equal(p.AllowHosts, []string{"api.acme.example"}) || !slices.Equal(p.Env, []string{"ACME_API_KEY"}) ||
		p.MemoryMB != 32 || p.Limits != (Limits{Concurrency: 4}) || len(p.AllowPaths) != 1 || p.AllowPaths[0].Write || !strings.HasSuffix(p.AllowPaths[0].Path, "acme") {
		t.Errorf("got %+v", p)
	}
	if n := strings.Count(strings.Join(c.Warnings, "\n"), "is yours to set, not a project's; ignored"); n != 5 {
		t.Errorf("%d warnings, want 5:\n%s", n, strings.Join(c.Warnings, "\n"))
	}
}
