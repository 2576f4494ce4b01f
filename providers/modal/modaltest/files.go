package modaltest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// toolsPath is the program in every sandbox that does the file operations of
// Modal's clients.
const toolsPath = "/__modal/.bin/modal-sandbox-fs-tools"

// An entry is one file as the program tells of it.
type entry struct {
	Name          string  `json:"name"`
	Path          string  `json:"path"`
	Type          string  `json:"type"`
	Size          int64   `json:"size"`
	Mode          uint32  `json:"mode"`
	Permissions   string  `json:"permissions"`
	Owner         string  `json:"owner"`
	Group         string  `json:"group"`
	ModifiedTime  float64 `json:"modified_time"`
	SymlinkTarget *string `json:"symlink_target"`
}

// tool runs the program with one JSON object as its argument.
func (b *box) tool(args []string, in io.Reader, out, errOut io.Writer) int {
	type request struct {
		Path      string `json:"path"`
		Parents   bool   `json:"parents"`
		Recursive bool   `json:"recursive"`
	}
	var asked struct {
		WriteFile, ReadFile, ListFiles, Stat, MakeDirectory, Remove, Watch *request
	}
	kind, err := "InvalidRequest", errors.New("one JSON object is expected")
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &asked)
	}
	if err == nil {
		kind, err = "", nil
		switch {
		case asked.WriteFile != nil:
			kind, err = b.writeFile(asked.WriteFile.Path, in)
		case asked.ReadFile != nil:
			kind, err = b.readFile(asked.ReadFile.Path, out)
		case asked.ListFiles != nil:
			kind, err = b.listFiles(asked.ListFiles.Path, out)
		case asked.Stat != nil:
			kind, err = b.stat(asked.Stat.Path, out)
		case asked.MakeDirectory != nil:
			kind, err = b.makeDirectory(asked.MakeDirectory.Path, asked.MakeDirectory.Parents)
		case asked.Remove != nil:
			kind, err = b.removeFile(asked.Remove.Path, asked.Remove.Recursive)
		default:
			kind, err = "NotSupported", errors.New("operation not supported")
		}
	}
	if err == nil {
		return 0
	}
	if kind == "" {
		kind = kindOf(err)
	}
	json.NewEncoder(errOut).Encode(map[string]string{"error_kind": kind, "message": err.Error(), "detail": ""})
	return 1
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "NotFound"
	case errors.Is(err, fs.ErrPermission):
		return "PermissionDenied"
	case errors.Is(err, syscall.EISDIR):
		return "IsDirectory"
	case errors.Is(err, syscall.ENOTDIR):
		return "NotDirectory"
	case errors.Is(err, syscall.ENOTEMPTY):
		return "DirectoryNotEmpty"
	}
	return "Internal"
}

// writeFile replaces the file: it follows no link and keeps no mode.
func (b *box) writeFile(name string, in io.Reader) (string, error) {
	full, err := b.parents(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(full); err == nil && info.IsDir() {
		return "IsDirectory", errors.New("is a directory")
	}
	f, err := os.CreateTemp(filepath.Dir(full), ".tmp-")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, in)
	err = errors.Join(err, f.Chmod(0o644), b.machine.Own(f.Name()), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), full)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return "", err
}

// parents makes the directories above name and returns where it is.
func (b *box) parents(name string) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	var missing []string
	for at := filepath.Dir(full); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return "", syscall.ENOTDIR
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		missing = append(missing, at)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := errors.Join(os.Mkdir(missing[i], 0o755), b.machine.Own(missing[i])); err != nil {
			return "", err
		}
	}
	return full, nil
}

func (b *box) readFile(name string, out io.Writer) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	f, err := os.Open(full)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "IsDirectory", errors.New("is a directory")
	}
	_, err = io.Copy(out, f)
	return "", err
}

func (b *box) listFiles(name string, out io.Writer) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	found, err := os.ReadDir(full)
	if err != nil {
		return "", err
	}
	list := []entry{}
	for _, e := range found {
		if info, err := e.Info(); err == nil {
			list = append(list, describe(path.Join(full, e.Name()), info))
		}
	}
	return "", json.NewEncoder(out).Encode(list)
}

func (b *box) stat(name string, out io.Writer) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(full)
	if err != nil {
		return "", err
	}
	return "", json.NewEncoder(out).Encode(describe(full, info))
}

func describe(full string, info fs.FileInfo) entry {
	e := entry{
		Name: info.Name(), Path: full, Type: "file", Size: info.Size(), Mode: uint32(info.Mode().Perm()),
		Permissions: info.Mode().String(), Owner: "root", Group: "root",
		ModifiedTime: float64(info.ModTime().UnixNano()) / 1e9,
	}
	switch {
	case info.IsDir():
		e.Type = "directory"
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(full)
		e.Type, e.SymlinkTarget = "symlink", &target
	}
	return e
}

func (b *box) makeDirectory(name string, parents bool) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(full); err == nil {
		if info.IsDir() && parents {
			return "", nil
		}
		return "PathAlreadyExists", errors.New("path already exists")
	}
	if parents {
		if full, err = b.parents(name); err != nil {
			return "", err
		}
	}
	return "", errors.Join(os.Mkdir(full, 0o755), b.machine.Own(full))
}

func (b *box) removeFile(name string, recursive bool) (string, error) {
	full, err := b.machine.Path(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(full); err != nil {
		return "", err
	}
	if recursive {
		return "", os.RemoveAll(full)
	}
	return "", os.Remove(full)
}
