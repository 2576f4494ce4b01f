package langsmithtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func (s *Server) fileRoutes(in func(op, method, path string, f func(http.ResponseWriter, *http.Request, *box))) {
	in("upload", "POST", "upload", s.upload)
	in("download", "GET", "download", s.download) // and HEAD
	in("glob", "POST", "glob", s.glob)
	in("grep", "POST", "grep", s.grep)
}

func refuseFile(w http.ResponseWriter, kind string, err error) {
	switch {
	case errors.Is(err, fs.ErrPermission):
		refuse(w, 403, "PermissionDenied", "permission denied")
	case errors.Is(err, fs.ErrNotExist) && kind == "ReadError":
		refuse(w, 404, "FileNotFound", "File not found")
	case errors.Is(err, syscall.EISDIR):
		refuse(w, 400, kind, "is a directory")
	default:
		refuse(w, 500, kind, err.Error())
	}
}

// upload writes the part "file" to the path that the query names. It makes no
// directory.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, b *box) {
	parts, err := r.MultipartReader()
	if err != nil {
		invalid(w, "file", "multipart expected")
		return
	}
	part, err := parts.NextPart()
	if err != nil || part.FormName() != "file" {
		invalid(w, "file", "the part file is missing")
		return
	}
	asked := r.URL.Query().Get("path")
	name, err := b.machine.Path(asked)
	if err != nil {
		refuseFile(w, "WriteError", err)
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		refuseFile(w, "WriteError", err)
		return
	}
	n, err := io.Copy(f, part)
	if err = errors.Join(err, f.Close(), b.machine.Own(name)); err != nil {
		refuseFile(w, "WriteError", err)
		return
	}
	emulate.Reply(w, 200, map[string]any{"path": asked, "written": n})
}

// readable opens the regular file name if the sandbox's user may read it.
func readable(name string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return nil, nil, syscall.EISDIR
	case info.Mode()&0o400 == 0:
		return nil, nil, fs.ErrPermission
	}
	f, err := os.Open(name)
	return f, info, err
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, b *box) {
	name, err := b.machine.Path(r.URL.Query().Get("path"))
	var f *os.File
	var info fs.FileInfo
	if err == nil {
		f, info, err = readable(name)
	}
	if err != nil {
		refuseFile(w, "ReadError", err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	if s.Behaviour().IgnoreRange {
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", time.Time{}, f)
}

// below visits the files below the directory path.
func (b *box) below(path string, visit func(name string, d fs.DirEntry)) error {
	root, err := b.machine.Path(path)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != root {
			visit(name, d)
		}
		return nil
	})
}

func (s *Server) glob(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct{ Pattern, Path string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		invalid(w, "pattern", "pattern is required")
		return
	}
	found := []any{}
	err := b.below(body.Path, func(name string, d fs.DirEntry) {
		if ok, _ := filepath.Match(body.Pattern, d.Name()); ok {
			found = append(found, map[string]any{"path": name, "is_dir": d.IsDir()})
		}
	})
	if err != nil {
		refuseFile(w, "ReadError", err)
		return
	}
	emulate.Reply(w, 200, map[string]any{"matches": found, "truncated": false})
}

func (s *Server) grep(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct{ Pattern, Path string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		invalid(w, "pattern", "pattern is required")
		return
	}
	found := []any{}
	err := b.below(body.Path, func(name string, d fs.DirEntry) {
		if !d.Type().IsRegular() {
			return
		}
		data, _ := os.ReadFile(name)
		for n, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, body.Pattern) {
				found = append(found, map[string]any{"path": name, "line": n + 1, "text": line})
			}
		}
	})
	if err != nil {
		refuseFile(w, "ReadError", err)
		return
	}
	emulate.Reply(w, 200, map[string]any{"matches": found, "truncated": false})
}
