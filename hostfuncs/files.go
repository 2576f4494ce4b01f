package hostfuncs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

const mostNames = 10000

// An openFile is a file of a granted folder. A new one gets its name when it is
// closed.
type openFile struct {
	*os.File
	root *os.Root
	temp string // the name until then; empty: it is read
	name string
	n    int64
	err  error
}

func (f *openFile) Write(p []byte) (int, error) {
	if f.temp == "" {
		return 0, fs.ErrPermission
	}
	if f.n += int64(len(p)); f.n > 64<<20 {
		f.err = &abi.Error{Kind: string(sandbox.CodeTooLarge), Message: "the file is larger than 64 MiB"}
		return 0, f.err
	}
	return f.File.Write(p)
}

// keep gives a new file its name.
func (f *openFile) keep() error {
	err := errors.Join(f.err, f.File.Close())
	if f.temp != "" {
		if err == nil {
			err = f.root.Rename(f.temp, f.name)
		}
		if err != nil {
			f.root.Remove(f.temp)
		}
		f.temp = ""
	}
	return err
}

func (f *openFile) Close() error { return f.keep() }

// file answers one FileCall.
func (c *Call) file(block []byte) abi.FileResult {
	fail := func(code sandbox.Code, format string, args ...any) abi.FileResult {
		e := &abi.Error{Kind: string(code), Message: fmt.Sprintf(format, args...)}
		c.last = e
		return abi.FileResult{Error: e}
	}
	var call abi.FileCall
	if err := json.Unmarshal(block, &call); err != nil {
		return fail(sandbox.CodeInvalidArgument, "fs: the call is not JSON")
	}
	root := c.f.roots[call.Root]
	if root == nil {
		return fail(sandbox.CodePermissionDenied, "no folder %q is granted (allow_paths)", call.Root)
	}
	i := slices.IndexFunc(c.f.grant.Folders, func(f Folder) bool { return f.Name == call.Root })
	write := c.f.grant.Folders[i].Write
	name := path.Clean(call.Path)
	if call.Path == "" {
		name = "."
	}
	if !fs.ValidPath(name) || strings.Contains(name, "\x00") || strings.Contains(name, `\`) {
		return fail(sandbox.CodeInvalidPath, "%q is not a path inside the folder", call.Path)
	}
	for _, own := range []string{".git/hooks", ".git/config", ".talkops"} {
		if strings.Contains("/"+strings.ToLower(name)+"/", "/"+own+"/") {
			return fail(sandbox.CodePermissionDenied, "%s is not for modules", call.Path)
		}
	}
	if e := c.full(); e != nil && (call.Fn == "open" || call.Fn == "create") {
		c.last = e
		return abi.FileResult{Error: e}
	}
	said := func(err error) abi.FileResult {
		code := sandbox.CodeOf(err)
		if code == sandbox.CodeInternal {
			code = sandbox.CodePermissionDenied // what leads out of the folder
		}
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return fail(code, "%s: %v", call.Path, err)
	}
	switch call.Fn {
	case "stat", "list", "open":
		if info, err := root.Stat(name); err != nil {
			return said(err)
		} else if !info.Mode().IsRegular() && !info.IsDir() {
			return fail(sandbox.CodeNotAFile, "%s is neither a file nor a directory", call.Path)
		} else if call.Fn == "stat" {
			return abi.FileResult{Size: info.Size(), Dir: info.IsDir()}
		} else if call.Fn == "list" && !info.IsDir() {
			return fail(sandbox.CodeNotADirectory, "%s is not a directory", call.Path)
		} else if call.Fn == "open" && info.IsDir() {
			return fail(sandbox.CodeIsDirectory, "%s is a directory", call.Path)
		}
		f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
		if err != nil {
			return said(err)
		}
		info, err := f.Stat()
		if err != nil || call.Fn == "open" && !info.Mode().IsRegular() {
			f.Close()
			return fail(sandbox.CodeNotAFile, "%s is not a file", call.Path)
		}
		if call.Fn == "open" {
			return abi.FileResult{Size: info.Size(), Handle: c.opened(&openFile{File: f})}
		}
		defer f.Close()
		names, err := f.Readdirnames(mostNames + 1)
		if err != nil && err != io.EOF {
			return said(err)
		}
		if len(names) > mostNames {
			return fail(sandbox.CodeTooLarge, "%s has more than %d names", call.Path, mostNames)
		}
		slices.Sort(names)
		return abi.FileResult{Dir: true, Names: names}
	case "create", "remove":
		if !write {
			return fail(sandbox.CodePermissionDenied, "the folder %q is granted for reading alone", call.Root)
		}
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return fail(sandbox.CodeNotAFile, "%s is not a file", call.Path)
		}
		// A link inside the folder could lead to what is not for modules.
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if info, err := root.Lstat(dir); err != nil {
				return said(err)
			} else if !info.IsDir() {
				return fail(sandbox.CodeNotADirectory, "%s is not a directory", dir)
			}
		}
		if call.Fn == "remove" {
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return said(err)
			}
			return abi.FileResult{}
		}
		temp := path.Join(path.Dir(name), fmt.Sprintf(".%s.%d.new", path.Base(name), len(c.handles)))
		f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return said(err)
		}
		return abi.FileResult{Handle: c.opened(&openFile{File: f, root: root, temp: temp, name: name})}
	}
	return fail(sandbox.CodeUnsupported, "fs has no %q", call.Fn)
}

func (c *Call) fileRead(f *openFile, most int32) (int64, []byte) {
	buf := make([]byte, most)
	n, err := f.Read(buf)
	switch {
	case n > 0:
		return 0, buf[:n]
	case err == io.EOF:
		return abi.StatusEnd, nil
	}
	return c.fail(sandbox.CodeInternal, "the file cannot be read"), nil
}
