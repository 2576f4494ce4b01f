//go:build unix

package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Patch and branch fit a repository that keeps other line ends than the files have.
func TestLineEndsAreThoseOfTheRepository(t *testing.T) {
	for _, auto := range []string{"true", "input", "false"} {
		t.Run("core.autocrlf "+auto, func(t *testing.T) {
			root := lay(t, map[string]string{
				"lf": "a\nb\nc\n", "crlf": "a\r\nb\r\nc\r\n", "d/set.txt": "a\nb\nc\n", "not.dat": "a\r\nb\r\n", "bin": "a\x00\r\n",
				".gitattributes": "*.txt text eol=crlf\n*.dat -text\n",
			})
			sh(t, root, `git init -q; git config core.autocrlf false; git config core.safecrlf false; git add -A; git commit -qm start; git config core.autocrlf `+auto+`; rm -r lf d; git checkout -q -- .`)
			box := t.TempDir()
			h := upload(t, root, box)
			sb := boxAt(t, box, os.Getenv("PATH"))
			// An editor there keeps the line ends it finds; new files end as it likes.
			sh(t, box, `sed -i s/b/B/ lf crlf d/set.txt not.dat bin; printf 'x\r\ny\r\n' > new; printf 'x\r\n' > new.txt; printf 'x\r\n' > new.dat; printf 'x\r\r\n' > odd`)
			if err := h.Bring(t.Context(), sb, true); err != nil {
				t.Fatal(err)
			}
			if _, _, err := h.Branch(t.Context(), "work", "m", h.Changes); err != nil {
				t.Fatal(err)
			}
			// What git itself would commit is the measure.
			var patch bytes.Buffer
			if left, err := h.Patch(&patch, h.Changes); err != nil || len(left) > 0 {
				t.Fatal(left, err)
			}
			file := filepath.Join(t.TempDir(), "p")
			os.WriteFile(file, patch.Bytes(), 0o600)
			sh(t, root, `git apply --whitespace=nowarn "`+file+`"`)
			for _, name := range []string{"lf", "crlf", "d/set.txt", "not.dat", "bin", "new.dat"} {
				if got, want := sh(t, root, `od -c "`+name+`"`), sh(t, box, `od -c "`+name+`"`); got != want {
					t.Errorf("%s: the patch made\n%swant\n%s", name, got, want)
				}
			}
			sh(t, root, `cp -r "`+box+`"/. .; git add -A`)
			if got := sh(t, root, `git diff --cached --stat work`); got != "" {
				t.Errorf("the branch holds other content than git would:\n%s", got)
			}
		})
	}
}
