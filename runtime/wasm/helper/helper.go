// Package helper is the process in which a WebAssembly module lives: the same
// program, started again with [Arg] as its only argument, with no environment and
// no files but a directory for native code. It compiles the module that comes over
// its standard input and runs operations of it; whatever the module wants from the
// world it asks its parent for, which takes it for hostile and can kill it at any
// time. The package is also the one place that knows the frames both speak.
package helper

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/talkops-ai/talkops/sdk/abi"
)

// Arg is the argument that makes the program a helper. It looks like a flag, so
// that a program which does not know it ends at once.
const Arg = "-talkops-wasm-helper"

// Is reports whether a process with these arguments is a helper.
func Is(args []string) bool { return len(args) == 2 && args[1] == Arg }

// A Load is what the parent says first, before the bytes of the module.
type Load struct {
	Build  string `json:"build"` // of the parent; another is another program
	SHA256 string `json:"sha256"`
	Pages  uint32 `json:"pages"` // of memory an instance may have, 64 KiB each
	WASI   bool   `json:"wasi"`
	Alias  bool   `json:"alias"`
	AtOnce int    `json:"at_once"`
}

// Build names the program that runs, as far as it knows.
func Build() string {
	text := fmt.Sprintf("abi %d.%d", abi.Major, abi.Minor)
	if info, ok := debug.ReadBuildInfo(); ok {
		text += " " + info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				text += " " + s.Value
			}
		}
	}
	return text
}

// Main is the helper's whole life; its result is the exit status. It ends with
// its standard input.
func Main() int {
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr // a library that prints must not break the frames
	if err := serve(in, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	w := &Writer{W: out}
	first, err := Read(r, MaxLoad)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	load, module, err := splitLoad(first)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != load.SHA256 {
		return errors.New("the module arrived damaged")
	}
	if dir, err := os.Getwd(); err != nil || filepath.Base(dir) != load.SHA256 {
		return errors.New("this is not the directory of the module") // it may be emptied
	}
	limit(load)
	if load.Build != Build() {
		return w.Write(Frame{Kind: Broken, Payload: []byte("talkops was replaced while it ran; start it again")})
	}
	// The end of input ends the process, whatever it is doing.
	frames := make(chan Frame)
	go func() {
		for {
			f, err := Read(r, MaxFrame)
			if err != nil {
				os.Exit(0)
			}
			frames <- f
		}
	}()
	g, err := newGuest(load, module, w)
	if err != nil {
		return w.Write(Frame{Kind: Broken, Payload: []byte(abi.Clean(err.Error(), 300))})
	}
	if err := w.Write(Frame{Kind: Ready}); err != nil {
		return err
	}
	for f := range frames {
		if err := g.take(f); err != nil {
			return err
		}
	}
	return nil
}

// First is the frame that loads a module.
func First(l Load, module []byte) (Frame, error) {
	head, err := json.Marshal(l)
	if err != nil {
		return Frame{}, err
	}
	return Frame{Kind: LoadModule, Payload: append(append(head, 0), module...)}, nil
}

func splitLoad(f Frame) (l Load, module []byte, err error) {
	for i, b := range f.Payload {
		if b == 0 {
			return l, f.Payload[i+1:], json.Unmarshal(f.Payload[:i], &l)
		}
	}
	return l, nil, fmt.Errorf("the first frame loads no module")
}
