package cmd

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// a repository for git as it is: settings and hooks that run a program when git
// only looks are found out, by running it.
type gitRepo struct {
	t           *testing.T
	dir, marker string
}

func newGitRepo(t *testing.T) gitRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := gitRepo{t, t.TempDir(), filepath.Join(t.TempDir(), "ran")}
	r.git("init", "-q", "-b", "main")
	r.write("f.txt", "one\n")
	r.write(".gitattributes", "*.txt diff=d filter=f merge=m\n")
	r.git("add", ".")
	r.git("commit", "-qm", "one")
	r.write("f.txt", "two\n")
	return r
}

func (r gitRepo) git(args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (r gitRepo) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// runs reports whether a git that only looks runs the program.
func (r gitRepo) runs() bool {
	for _, args := range [][]string{
		{"status"}, {"diff"}, {"diff", "--stat"}, {"log", "-p", "-1"}, {"show"}, {"blame", "f.txt"}, {"log", "--format=%G?"}, {"branch"}, {"ls-files", "-m"},
		{"grep", "o"}, {"describe", "--always", "--dirty"}, {"add", "f.txt"}, {"cat-file", "--textconv", "HEAD:f.txt"}, {"archive", "--format=x", "HEAD"}, {"st"}, {"submodule", "status"},
	} {
		exec.Command("git", append([]string{"-C", r.dir}, args...)...).Run() // most runs fail with such a program
		if _, err := os.Stat(r.marker); err == nil {
			return true
		}
	}
	return false
}

func TestWhatGitRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are for a Unix shell")
	}
	for _, row := range []struct {
		name  string
		lay   func(r gitRepo, program string)
		found bool
	}{
		{"nothing", func(gitRepo, string) {}, false},
		{"harmless settings", func(r gitRepo, _ string) {
			r.git("config", "user.name", "a")
			r.git("config", "remote.origin.url", "https://example.com/a.git")
			r.git("config", "branch.main.remote", "origin")
			r.git("config", "diff.algorithm", "patience")
		}, false},
		{"a watcher of files", func(r gitRepo, p string) { r.git("config", "core.fsmonitor", p) }, true},
		{"an external diff", func(r gitRepo, p string) { r.git("config", "diff.external", p) }, true},
		{"an external diff of one kind", func(r gitRepo, p string) { r.git("config", "diff.d.command", p) }, true},
		{"a text conversion", func(r gitRepo, p string) { r.git("config", "diff.d.textconv", p) }, true},
		{"a filter into the repository", func(r gitRepo, p string) { r.git("config", "filter.f.clean", p) }, true},
		{"a filter that stays", func(r gitRepo, p string) { r.git("config", "filter.f.process", p) }, true},
		{"an alias", func(r gitRepo, p string) { r.git("config", "alias.st", "!"+p) }, true},
		{"a format of archives", func(r gitRepo, p string) { r.git("config", "tar.x.command", p) }, true},
		{"another file of settings", func(r gitRepo, p string) {
			r.write("more", "[core]\n\tfsmonitor = "+p+"\n")
			r.git("config", "include.path", filepath.Join(r.dir, "more"))
		}, true},
		{"settings of the work tree", func(r gitRepo, p string) {
			r.git("config", "extensions.worktreeConfig", "true")
			r.git("config", "--worktree", "core.fsmonitor", p)
		}, true},
		{"in other letters", func(r gitRepo, p string) { r.write(".git/config", "[CORE]\n\tFsMonitor = "+p+"\n") }, true},
		{"a hook that looking runs", func(r gitRepo, p string) {
			r.write(".git/hooks/post-index-change", "#!/bin/sh\n"+p+"\n")
			r.git("config", "core.trustctime", "false")
		}, true},
		{"hooks elsewhere", func(r gitRepo, p string) {
			r.write("post-index-change", "#!/bin/sh\n"+p+"\n")
			r.git("config", "core.hooksPath", r.dir)
		}, true},
		{"a submodule's watcher", func(r gitRepo, p string) {
			other := newGitRepo(r.t)
			r.git("submodule", "--quiet", "add", other.dir, "sub")
			r.git("-C", "sub", "config", "core.fsmonitor", p)
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newGitRepo(t)
			program := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n: >'"+r.marker+"'\ncat\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			row.lay(r, program)
			if got := gitRuns(r.dir); got != row.found {
				t.Errorf("found: %v, want %v", got, row.found)
			}
			if _, err := os.Stat(r.marker); err == nil {
				t.Fatal("finding it out ran the program")
			}
			if ran := r.runs(); ran != row.found {
				t.Errorf("git runs the program: %v, want %v", ran, row.found)
			}
		})
	}
	t.Run("a bare repository in the project", func(t *testing.T) {
		r := newGitRepo(t)
		r.git("clone", "-q", "--bare", ".", "bare")
		if gitRuns(filepath.Join(r.dir, "bare")) {
			t.Error("a plain one runs programs")
		}
		r.git("-C", "bare", "config", "core.fsmonitor", "program")
		if !gitRuns(filepath.Join(r.dir, "bare")) || gitRuns(r.dir) {
			t.Error("its settings are not read for it alone")
		}
	})
	t.Run("what becomes a repository", func(t *testing.T) {
		r := newGitRepo(t)
		if embeds(r.dir) {
			t.Error("a plain project embeds one")
		}
		r.git("init", "-q", "sub/own")
		if embeds(r.dir) {
			t.Error("one without settings of its own runs programs")
		}
		r.git("-C", "sub/own", "config", "core.fsmonitor", "program")
		if !embeds(r.dir) || embeds(filepath.Join(r.dir, "sub", "own")) {
			t.Error("one below is not told from the project's own")
		}
		r = newGitRepo(t)
		if err := os.MkdirAll(filepath.Join(r.dir, "src", "head"), 0o700); err != nil {
			t.Fatal(err)
		}
		if embeds(r.dir) {
			t.Error("a directory is no head")
		}
		if err := os.WriteFile(filepath.Join(r.dir, "src", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !embeds(r.dir) {
			t.Error("a head without more is overlooked")
		}
		if !embeds(filepath.Join(r.dir, "src")) {
			t.Error("nor is it seen where the project begins")
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if gitRuns(t.TempDir()) || !gitRuns(filepath.Join(t.TempDir(), "none")) {
			t.Error("a directory without a repository has none; one that is yet to come may be anything")
		}
	})
}

// The settings that the tests with git do not reach, by their names.
func TestSettingsThatNamePrograms(t *testing.T) {
	for _, name := range []string{
		"core.pager", "core.sshcommand", "core.editor", "core.askpass", "core.gitproxy", "core.attributesfile", "core.worktree", "core.alternaterefscommand",
		"pager.log", "gpg.program", "gpg.ssh.program", "credential.helper", "credential.https://example.com.helper", "difftool.x.cmd", "mergetool.x.cmd", "browser.x.cmd", "man.x.cmd",
		"sendemail.smtpserver", "guitool.x.cmd", "includeif.gitdir:/x/.path", "uploadpack.packobjectshook", "interactive.difffilter", "trailer.x.command", "hook.x.command",
		"gc.recentobjectshook", "submodule.x.update", "imap.tunnel", "log.showsignature", "merge.m.driver", "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.vcs",
		"sequence.editor", "web.browser", "help.browser", "protocol.ext.allow", "url.ext::x.insteadof", "url.x.pushinsteadof",
		"core.newsetting", "new.setting", "remote.origin.promisor", "extensions.partialclone", "extensions.worktreeconfig", "merge.x.driver", "diff.x.command", "diff.external", "diff.orderfile", "format.pretty", "commit.template", "mailmap.file",
	} {
		if !namesProgram(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"core.bare", "core.autocrlf", "user.name", "remote.origin.url", "remote.origin.fetch", "branch.main.merge", "submodule.x.url", "diff.algorithm", "merge.conflictstyle", "log.date", "pull.rebase", "color.ui", "status.showuntrackedfiles", "lfs.https://example.com/x.access", "branch.main.vscode-merge-base", "user.email"} {
		if namesProgram(name) {
			t.Errorf("%s names no program", name)
		}
	}
}

// A file that programs take for an option counts wherever it lies, except in git's
// own directory.
func TestDashed(t *testing.T) {
	for _, row := range []struct {
		name  string
		files []string
		want  bool
	}{
		{"nothing", nil, false},
		{"dashes inside names", []string{"a-b.txt", "x/y-z", "x--y"}, false},
		{"at the top", []string{"-rf"}, true},
		{"deep", []string{"a/b/c/--checkpoint-action=exec=sh x.sh"}, true},
		{"a directory", []string{"a/-x/y"}, true},
		{"in git's own", []string{".git/-x", "sub/.git/objects/-y"}, false},
		{"hidden", []string{".cache/-x"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "-root")
			for _, f := range append(row.files, "main.tf") {
				if err := os.MkdirAll(filepath.Join(root, filepath.Dir(f)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, f), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := named(root, dashed); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A name that is more than names when it is taken apart is found wherever it lies.
func TestSpacedNames(t *testing.T) {
	for name, want := range map[string]bool{"my notes.md": false, "a/b -e x.tf": true, "x /etc/shadow": true, ".git/a -b": false} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := named(root, approval.Splits); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// A link out of the project is found wherever it lies; those to programs of the
// system, as in a virtual environment, are none.
func TestLinksOut(t *testing.T) {
	outside := t.TempDir()
	for _, row := range []struct {
		name, at, to string
		want         bool
	}{
		{"inside", "a/l", "../main.tf", false},
		{"to a directory inside", "l", "a", false},
		{"out", "a/l", outside, true},
		{"a program", "venv/bin/python", "/usr/bin/env", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := real(t.TempDir())
			for _, d := range []string{"a", "venv/bin"} {
				if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(root, "main.tf"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(row.to, filepath.Join(root, row.at)); err != nil {
				t.Skip(err)
			}
			if got := linksOut(root); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Settings of terraform's that an init of the user's left are the user's; those that
// came with the repository are not.
func TestForeign(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	git("init", "-q")
	if foreign(root) {
		t.Error("without any")
	}
	for text, program := range map[string]bool{
		`terraform { encryption { method "external" "x" { decrypt_command = ["./x"] } } }`: true,
		`terraform { encryption { method external x { decrypt_command = ["./x"] } } }`:     true,
		`terraform { encryption { key_provider "aws_kms" "x" { shared_config_files = ["./x"] }
method "aes_gcm" "m" { keys = key_provider.aws_kms.x } } }`: true,
		`resource "aws_s3_bucket" "encryption" {}`:               false,
		`resource "x" "y" { server_side_encryption = "method" }`: false,
	} {
		file := filepath.Join(root, "main.tofu")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if foreign(root) != program {
			t.Errorf("%s: %t", text, !program)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, ".terraform"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".terraform", "terraform.tfstate"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if foreign(root) {
		t.Error("made here")
	}
	git("add", "-f", ".terraform")
	if !foreign(root) {
		t.Error("of the repository")
	}
	git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
	moved := filepath.Join(root, "moved")
	if err := os.Mkdir(moved, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, ".terraform"), filepath.Join(moved, ".terraform")); err != nil {
		t.Fatal(err)
	}
	git("add", "-u")
	if !foreign(moved) {
		t.Error("of the repository, moved, and taken from the index")
	}
	git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "y")
	if foreign(moved) {
		t.Error("of an older revision")
	}
	// A repository among the files, as a clone may bring it, says that it has none of them.
	planted := filepath.Join(root, "planted")
	git("init", "-q", "--bare", planted)
	git("-C", planted, "config", "core.bare", "false")
	git("-C", planted, "config", "core.worktree", ".")
	if err := os.Rename(moved, filepath.Join(planted, "in")); err != nil {
		t.Fatal(err)
	}
	if !foreign(filepath.Join(planted, "in")) {
		t.Error("in a repository among the files")
	}
	if err := os.Rename(filepath.Join(planted, "in", ".terraform"), filepath.Join(root, ".terraform")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	if !foreign(root) {
		t.Error("without a repository nobody knows whose they are")
	}
}

// A program is the project's if the search for it comes to the project first.
func TestProgramsOfTheProject(t *testing.T) {
	root, system := real(t.TempDir()), real(t.TempDir())
	for _, f := range []string{filepath.Join(root, "bin", "jq"), filepath.Join(root, "sub", "make"), filepath.Join(system, "jq"), filepath.Join(system, "cat")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := func(dirs ...string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	bin := filepath.Join(root, "bin")
	for _, row := range []struct {
		search, name string
		wrote, want  bool
	}{
		{list(system), "jq", true, false}, {list(bin, system), "jq", false, true}, {list(system, bin), "jq", false, false}, {list(bin, system), "cat", false, false}, {list(bin, system), "cat", true, true}, {list(system, bin), "cat", true, false},
		{list("sub", system), "make", false, false}, {list(system, ""), "cat", true, false},
	} {
		if got := ofProject(root, row.search, row.name, row.wrote); got != row.want {
			t.Errorf("%s along %q, written %v: %v", row.name, row.search, row.wrote, got)
		}
	}
}

// What the environment names may lie in the project.
func TestLeads(t *testing.T) {
	root := real(t.TempDir())
	in, sep := filepath.Join(root, "kubeconfig"), string(filepath.ListSeparator)
	for kv, want := range map[string]string{
		"KUBECONFIG=": "", "KUBECONFIG=/etc/kubeconfig": "", "KUBECONFIG=kubeconfig": "KUBECONFIG", "KUBECONFIG=" + in: "KUBECONFIG", "KUBECONFIG=/etc/a" + sep + "./b": "KUBECONFIG", "ANY=" + in: "ANY", "ANY=" + root: "ANY",
		"PATH=/usr/bin" + sep + filepath.Join(root, "bin"): "PATH", "PATH=/usr/bin" + sep + "bin": "PATH", "PATH=/usr/bin": "", "PWD=" + root: "", "VIRTUAL_ENV=" + filepath.Join(root, ".venv"): "", "LANG=C": "", "XDG_CONFIG_HOME=/home/dev/.config": "", "DOCKER_CONFIG=.": "DOCKER_CONFIG",
		"NODE_OPTIONS=--require ./x.js": "NODE_OPTIONS", "JAVA_TOOL_OPTIONS=-javaagent:" + in: "JAVA_TOOL_OPTIONS", "KUBECTL_EXTERNAL_DIFF=../d.sh": "KUBECTL_EXTERNAL_DIFF", "LESSOPEN=| /usr/bin/lesspipe %s": "", "LS_COLORS=*.tar=01;31:*./=1": "", "NAME=a./b": "",
		"PYTHONPATH=" + sep + "/opt/lib": "PYTHONPATH", "PYTHONPATH=/opt/lib": "", "MANPATH=/opt/man" + sep: "", "PERL5LIB=/opt/lib" + sep: "PERL5LIB",
	} {
		if got := strings.Join(leads(root, []string{"A=b", kv}), " "); got != want {
			t.Errorf("%q: %q", kv, got)
		}
	}
}

// Some managers of versions have a script of the program's name, and no directory of shims.
func TestScriptsOfVersions(t *testing.T) {
	for dir, want := range map[string]bool{"/home/me/.tfenv/bin": true, "/home/me/.volta/bin": true, "/home/me/.pyenv/shims": true, "/home/me/.local/share/mise/shims": true, "/home/me/.local/share/mise/installs/jq/1.7/bin": false, "/usr/bin": false, "/home/me/venv/bin": false, "/opt/environment/bin": false} {
		if got := chosenLater(dir, dir+"/terraform"); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
}

// A manager of versions starts the program that a file of the project names.
func TestProgramsThatTheProjectChooses(t *testing.T) {
	root, shims := real(t.TempDir()), filepath.Join(real(t.TempDir()), "shims")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(shims, "node"), "")
	for _, row := range []struct {
		name, text string
		want       bool
	}{
		{".tool-versions", "nodejs 20.1.0\n", false}, {".tool-versions", "nodejs path:./tools\n", true}, {"sub/.tool-versions", "nodejs path:./tools\n", true}, {"README.md", "path:./tools\n", false},
		{"mise.toml", "[tools]\nnode = \"path:tools\"\n", true}, {".mise/config.toml", "[tools]\nnode = \"20\"\n", true}, {"mise.dev.toml", "[env]\n_.source = 'x.sh'\n", true}, {".tool-versions", "github:evil/node 1.0\n", true}, {".tool-versions", "node {{ exec(command='x') }}\n", true}, {"aqua.yaml", "", true}, {"main.toml", "", false}, {".python-version", "3.12\n", false}, {".python-version", "../../tools\n", true},
		{".prototools", "[plugins]\nnode = \"file://./x.wasm\"\n", true}, {"sub/.volta/hooks.json", "{}", true},
	} {
		write(filepath.Join(root, row.name), row.text)
		if got := ofProject(root, shims, "node", false); got != row.want {
			t.Errorf("%s: %q: %v", row.name, row.text, got)
		}
		if got := pathLeads(root, shims); got != row.want {
			t.Errorf("%s: %q: what others start by name: %v", row.name, row.text, got)
		}
		if err := os.Remove(filepath.Join(root, row.name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A link, and a directory that holds one, are found; a file and its directory are not.
func TestLinked(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"plain/a", "tree/a"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "plain/a/f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../plain", filepath.Join(root, "tree/a/l")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]bool{"plain": false, "plain/a/f": false, "none": false, "tree": true, "tree/a/l": true} {
		if got := linked(filepath.Join(root, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What git starts by name, for the user's own settings, may be the project's where PATH
// leads there; and no program loads code from wherever it is.
func TestWhatGitAndTheSystemFindInTheProject(t *testing.T) {
	root, settings := real(t.TempDir()), filepath.Join(t.TempDir(), "gitconfig")
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for text, want := range map[string]bool{"[user]\nname = a\n[alias]\nst = status\n": false, "[filter \"lfs\"]\nclean = git-lfs clean -- %f\n": true, "[diff \"exif\"]\ntextconv = exiftool\n": true, "[diff]\nalgorithm = patience\n": false, "[core]\nfsmonitor = true\n": true} {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := gitStarts(root); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if err := os.WriteFile(settings, []byte("[core]\nhooksPath = hooks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lookGit(t.Context(), root, "init", "-q"); err != nil {
		t.Fatal(err)
	}
	if !gitRuns(root) {
		t.Error("hooks among the files are not seen")
	}
	if err := os.WriteFile(settings, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if gitRuns(root) {
		t.Error("git is said to run something where nothing is set")
	}
	sep := string(filepath.ListSeparator)
	a := &app{dir: root, environ: []string{"CDPATH=/home/dev", "BASH_FUNC_ls%%=() { id; }", "SHELLOPTS=xtrace", "POSIXLY_CORRECT=1", "LD_PRELOAD=x.so", "LD_AUDIT=x.so", "LD_LIBRARY_PATH=" + sep + "/opt/lib" + sep + "lib" + sep + filepath.Join(root, "lib"), "PATH=" + sep + "/bin", "B=c"}}
	if got, want := a.hostEnv(), map[string]string{"LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin", "B": "c"}; !maps.Equal(got, want) {
		t.Errorf("commands get %v", got)
	}
	if !pathLeads(root, "/bin"+sep+filepath.Join(root, "bin")) || pathLeads(root, "/bin"+sep+"bin") {
		t.Error("where PATH leads is not seen")
	}
}
