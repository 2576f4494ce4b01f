package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/talkops-ai/talkops/runtime/wasm"
	"github.com/talkops-ai/talkops/sdk/guest"
	"github.com/talkops-ai/talkops/wasm-providers/acme"
)

// A language is one that a provider can be written in. Its template is the
// tutorial's provider, its kit the folder of that name in sdk/guest.
type language struct {
	name  string
	main  string // the file that an author changes
	mark  string // the file by which a folder of that language is known
	named string // how the template says its name, for fmt
	calls string // by what requests leave
	line  string // the build without talkops, for NAME
	needs string // what has to be installed, and how

	// build finds the compiler. It returns no command if there is none.
	build func(ctx context.Context, dir, out string) *exec.Cmd
}

// languages are what a new provider can be written in.
func languages() []language {
	return []language{
		{
			name: "go", main: "main.go", mark: "go.mod", named: "Name: %q", calls: "guest.Do and guest.Open",
			line:  `GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w" -o NAME.wasm .`,
			needs: "Go 1.26 or newer, from go.dev/dl or your system's packages, and talkops' module: go get github.com/talkops-ai/talkops, or provider new --sdk DIR with a checkout of it",
			build: func(ctx context.Context, _, out string) *exec.Cmd {
				cmd := found(ctx, "go", "build", "-mod=mod", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
				if cmd != nil {
					cmd.Env = []string{"GOOS=wasip1", "GOARCH=wasm"}
				}
				return cmd
			},
		},
		{
			name: "rust", main: "provider.rs", mark: "provider.rs", named: `"name": %q`, calls: "Request::send and Request::start",
			line:  "rustc --edition 2021 --crate-type cdylib --target wasm32-unknown-unknown -C opt-level=s -C lto -C panic=abort -C strip=symbols -o NAME.wasm provider.rs",
			needs: "a rustc with the target wasm32-unknown-unknown: rustup target add wasm32-unknown-unknown, or on Debian and Ubuntu apt-get install rustc libstd-rust-dev-wasm32 lld",
			build: func(ctx context.Context, _, out string) *exec.Cmd {
				return rustc(ctx, "--edition", "2021", "--crate-type", "cdylib", "--target", "wasm32-unknown-unknown",
					"-C", "opt-level=s", "-C", "lto", "-C", "panic=abort", "-C", "strip=symbols", "-o", out, "provider.rs")
			},
		},
		{
			name: "c", main: "provider.c", mark: "provider.c", named: `"name": %q`, calls: "http and http_start",
			line:  "clang --target=wasm32 -std=gnu11 -Os -Wall -ffreestanding -nostdlib -Wl,--no-entry -Wl,--strip-all -Wl,--stack-first -Wl,-z,stack-size=131072 -o NAME.wasm provider.c",
			needs: "clang and wasm-ld: on Debian and Ubuntu apt-get install clang lld, on macOS brew install llvm lld",
			build: func(ctx context.Context, _, out string) *exec.Cmd {
				if _, err := exec.LookPath("wasm-ld"); err != nil {
					return nil
				}
				return found(ctx, "clang", "--target=wasm32", "-std=gnu11", "-Os", "-Wall", "-ffreestanding", "-nostdlib",
					"-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", "-Wl,-z,stack-size=131072", "-o", out, "provider.c")
			},
		},
		{
			name: "assemblyscript", main: "provider.ts", mark: "provider.ts", named: `"name": %q`, calls: "Request.send and Request.start",
			line:  "npx asc provider.ts -O3 --use abort=talkops/aborted --outFile NAME.wasm",
			needs: "the AssemblyScript compiler: npm install, in this folder",
			build: func(ctx context.Context, dir, out string) *exec.Cmd {
				args := []string{"provider.ts", "-O3", "--use", "abort=talkops/aborted", "--outFile", out}
				asc := filepath.Join(dir, "node_modules", "assemblyscript", "bin", "asc.js")
				if _, err := os.Stat(asc); err == nil {
					return found(ctx, "node", append([]string{asc}, args...)...)
				}
				return found(ctx, "asc", args...)
			},
		},
		{
			name: "zig", main: "provider.zig", mark: "provider.zig", named: `"name": %q`, calls: "Request.send and Request.start",
			line:  "zig build-exe provider.zig -target wasm32-freestanding -fno-entry -rdynamic -O ReleaseSmall -fstrip -femit-bin=NAME.wasm",
			needs: "Zig 0.15 or newer: from ziglang.org/download, or pip install ziglang",
			build: func(ctx context.Context, _, out string) *exec.Cmd {
				args := []string{"build-exe", "provider.zig", "-target", "wasm32-freestanding", "-fno-entry", "-rdynamic", "-O", "ReleaseSmall", "-fstrip", "-femit-bin=" + out}
				if cmd := found(ctx, "zig", args...); cmd != nil {
					return cmd
				}
				if py := found(ctx, "python3", append([]string{"-m", "ziglang"}, args...)...); py != nil && exec.CommandContext(ctx, py.Path, "-c", "import ziglang").Run() == nil {
					return py
				}
				return nil
			},
		},
	}
}

func languageNames() string {
	var names []string
	for _, l := range languages() {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// found is a command of a program in PATH, or nil.
func found(ctx context.Context, name string, args ...string) *exec.Cmd {
	file, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return exec.CommandContext(ctx, file, args...)
}

// rustc is the first compiler that has the target. The one in PATH often lacks it
// where the distribution's has it.
func rustc(ctx context.Context, args ...string) *exec.Cmd {
	for _, name := range []string{"rustc", "/usr/bin/rustc"} {
		ask := found(ctx, name, "--print", "target-libdir", "--target", "wasm32-unknown-unknown")
		if ask == nil {
			continue
		}
		out, err := ask.Output()
		if err != nil {
			continue
		}
		if lib, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "libstd-*")); err == nil && len(lib) > 0 {
			return exec.CommandContext(ctx, ask.Path, args...)
		}
	}
	return nil
}

const newReadme = `# NAME: a sandbox provider for talkops

    talkops provider build                        # writes NAME.wasm
    talkops provider check --practice NAME.wasm   # holds it to every rule of the contract
    talkops provider add NAME.wasm
    export ACME_API_KEY=...                       # whatever its description declares
    talkops --sandbox NAME -p "..."

Building needs NEEDS.

MAIN is a whole provider for the practice service, which ` + "`check --practice`" + `
starts on this computer. Put your service in its place, call by call. Requests leave by
CALLS alone. The value of a secret setting is a placeholder; talkops
puts the secret in its place where it stands in a header. What each operation promises,
and what else a provider can do, is on the authors' page: sdk/README.md of talkops.
When something goes wrong, ` + "`check --log`" + ` shows every request and what the module logs.
KIT
Without talkops the build is

    LINE
`

// files are what a new folder holds.
func (l language) files(name string) (map[string]string, error) {
	files := map[string]string{}
	take := func(from fs.FS, folder string) error {
		entries, err := fs.ReadDir(from, folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			data, err := fs.ReadFile(from, path.Join(folder, e.Name()))
			if err != nil {
				return err
			}
			files[e.Name()] = string(data)
		}
		return nil
	}
	kit := ""
	if l.name != "go" { // whose kit is a module
		if err := take(guest.Kits, l.name); err != nil {
			return nil, err
		}
		var names []string
		for f := range files {
			names = append(names, f)
		}
		slices.Sort(names)
		kit = "\n" + strings.Join(names, " and ") + " are talkops' kit: to be read, and not to be changed.\n"
	}
	if err := take(acme.Source, l.name); err != nil {
		return nil, err
	}
	files[l.main] = strings.ReplaceAll(files[l.main], fmt.Sprintf(l.named, "acme"), fmt.Sprintf(l.named, name))
	text := strings.NewReplacer("NEEDS", l.needs, "MAIN", l.main, "CALLS", l.calls, "LINE", l.line, "KIT", kit).Replace(newReadme)
	files["README.md"] = strings.ReplaceAll(text, "NAME", name)
	return files, nil
}

func (a *app) providerNewCommand() *cobra.Command {
	var lang, sdk string
	c := &cobra.Command{
		Use: "new NAME", Short: "Write a small working provider to begin with",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"give the new provider a name: talkops provider new NAME"}
			}
			return nil
		},
		Example: "  talkops provider new acme\n  talkops provider new --lang rust acme",
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if why := providerName(name); why != "" {
				return &usageError{why}
			}
			at := slices.IndexFunc(languages(), func(l language) bool { return l.name == lang })
			if at < 0 {
				return &usageError{fmt.Sprintf("--lang %s: there is no such kit; there are: %s", lang, languageNames())}
			}
			l := languages()[at]
			if sdk != "" && l.name != "go" {
				return &usageError{"--sdk is for Go; the kit of " + l.name + " comes with the provider"}
			}
			files, err := l.files(name)
			if err != nil {
				return err
			}
			next := "talkops provider build"
			if l.name == "go" {
				files["go.mod"] = fmt.Sprintf("module %s\n\ngo 1.26\n", name)
				if sdk != "" {
					if mod, err := os.ReadFile(filepath.Join(a.absolute(sdk), "go.mod")); err != nil || !strings.HasPrefix(string(mod), "module github.com/talkops-ai/talkops\n") {
						return &usageError{"--sdk " + sdk + " is no checkout of talkops; nothing was written"}
					}
					files["go.mod"] += fmt.Sprintf("\nrequire github.com/talkops-ai/talkops v0.0.0\n\nreplace github.com/talkops-ai/talkops => %s\n", a.absolute(sdk))
				} else {
					next = "go get github.com/talkops-ai/talkops && " + next
				}
			}
			dir := a.absolute(name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				if errors.Is(err, fs.ErrExist) {
					return &usageError{name + " is there already; nothing was written"}
				}
				return err
			}
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					return err
				}
			}
			if l.build(c.Context(), dir, "") == nil {
				fmt.Fprintf(a.streams.Err, "Building needs %s.\n", l.needs)
			}
			fmt.Fprintf(a.streams.Err, "%s holds a provider that works. Next: cd %s && %s\n", name, name, next)
			return nil
		},
	}
	c.Flags().StringVar(&lang, "lang", "go", "the language: "+languageNames())
	c.Flags().StringVar(&sdk, "sdk", "", "a checkout of talkops whose sdk is used, for Go")
	return c
}

func (a *app) providerBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build [DIR]", Short: "Build a provider's module with its language's own tools", Args: usage(cobra.MaximumNArgs(1)),
		Example: "  talkops provider build\n  talkops provider build ./acme",
		RunE: func(c *cobra.Command, args []string) error {
			dir := a.dir
			if len(args) > 0 {
				dir = a.absolute(args[0])
			}
			var marks []string
			at := slices.IndexFunc(languages(), func(l language) bool {
				marks = append(marks, l.mark)
				_, err := os.Stat(filepath.Join(dir, l.mark))
				return err == nil
			})
			if at < 0 {
				return &usageError{fmt.Sprintf("%s holds no provider that talkops can build: none of %s is there", dir, strings.Join(marks, ", "))}
			}
			l := languages()[at]
			out := filepath.Join(dir, filepath.Base(dir)+".wasm")
			cmd := l.build(c.Context(), dir, out)
			if cmd == nil {
				return &usageError{"building needs " + l.needs}
			}
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, a.streams.Raw(), a.streams.Raw()
			cmd.Env = append(slices.Clone(a.environ), cmd.Env...)
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("the build failed: %w", err)
			}
			m, _, err := wasm.Read(out)
			if err != nil {
				return told(err)
			}
			fmt.Fprintf(a.streams.Err, "%s: %d bytes. Next: talkops provider check --practice %s\n", out, m.Size, out)
			return nil
		},
	}
}
