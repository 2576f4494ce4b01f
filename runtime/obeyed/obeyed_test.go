package obeyed_test

import (
	"testing"

	"github.com/talkops-ai/talkops/runtime/obeyed"
)

func TestWhatIsObeyed(t *testing.T) {
	for name, want := range map[string][2]bool{ // obeyed; hidden and not known to be harmless
		"main.tf": {}, "src/a.b.c": {}, "./a": {}, ".gitignore": {}, "sub/.dockerignore": {}, ".EditorConfig": {}, ".env.example": {}, ".github/CODEOWNERS": {}, ".github/ISSUE_TEMPLATE/bug.md": {}, "a/..": {},
		".git/hooks/pre-commit": {true, true}, "x/.GIT/config": {true, true}, ".git./config": {true, true}, "git~1/config": {true, true}, ".envrc": {true, true}, ".cargo/config.toml": {true, true}, ".pam_environment": {true, true}, ".github/workflows/a.yml": {true, true},
		"Jenkinsfile": {true, false}, "a/lefthook.yml": {true, false}, "lefthook.toml": {true, false}, "mise.ci.toml": {true, false}, "sub/mise/config.toml": {true, false}, "aqua.yaml": {true, false}, "mise.md": {}, "flake.nix": {true, false}, "x/HEAD": {true, false}, "src/head/index.js": {}, "head.go": {}, "x.code-workspace": {true, false}, ".github/copilot-instructions.md": {false, true}, ".github": {false, true}, ".yamllint": {false, true}, ".eslintrc.js": {false, true}, ".foo/bar": {false, true}, "a/.x": {false, true}, ".e\u200bnvrc": {true, true},
		`.git\hooks\pre-commit`: {true, true}, `a\.GIT`: {true, true}, `a\b`: {}, "VSCODE~1/tasks.json": {true, false}, "TALKOP~1": {true, false}, "~1": {}, "notes~": {}, "a~b": {}, "backup.~1~": {},
		".hg/hgrc": {true, true}, ".helix/languages.toml": {true, true}, ".Rprofile": {true, true}, "x/.pdbrc": {true, true}, ".config/mise/config.toml": {true, true},
	} {
		if got := [2]bool{obeyed.Path(name), obeyed.Hidden(name)}; got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	if !obeyed.Matched(".git*") || obeyed.Matched("main*") || !obeyed.Begun("Jenkinsf") || obeyed.Begun("jen") {
		t.Error("a beginning, or a pattern, is not read")
	}
}
