package daytonatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

func (s *Server) fileRoutes(in func(op, method, path string, f func(http.ResponseWriter, *http.Request, *box))) {
	in("upload", "POST", "files/bulk-upload", s.upload)
	in("download", "GET", "files/download", s.download)
	in("bulk-download", "POST", "files/bulk-download", s.bulkDownload)
	in("files-list", "GET", "files", s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		entries, err := os.ReadDir(name)
		if err != nil {
			return err
		}
		list := []any{}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				list = append(list, fileInfo(filepath.Join(name, e.Name()), info))
			}
		}
		emulate.Reply(w, 200, list)
		return nil
	}))
	in("files-info", "GET", "files/info", s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		info, err := os.Stat(name)
		if err == nil {
			emulate.Reply(w, 200, fileInfo(name, info))
		}
		return err
	}))
	in("files-folder", "POST", "files/folder", s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		mode, err := strconv.ParseUint(r.URL.Query().Get("mode"), 8, 32)
		if err != nil {
			return errBad
		}
		if err := b.makeDir(name); err != nil {
			return err
		}
		if err := os.Chmod(name, fs.FileMode(mode)); err != nil {
			return err
		}
		emulate.Reply(w, 201, nil)
		return nil
	}))
	in("files-permissions", "POST", "files/permissions", s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		mode, err := strconv.ParseUint(r.URL.Query().Get("mode"), 8, 32)
		if err != nil {
			return errBad
		}
		if err := os.Chmod(name, fs.FileMode(mode)); err != nil {
			return err
		}
		emulate.Reply(w, 200, nil)
		return nil
	}))
	in("files-delete", "DELETE", "files", s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		if info.IsDir() && r.URL.Query().Get("recursive") != "true" {
			return errBad
		}
		if err := os.RemoveAll(name); err != nil {
			return err
		}
		w.WriteHeader(204)
		return nil
	}))
}

var errBad = errors.New("bad request")

// withPath resolves the query parameter path and answers errors.
func (s *Server) withPath(f func(http.ResponseWriter, *http.Request, *box, string) error) func(http.ResponseWriter, *http.Request, *box) {
	return func(w http.ResponseWriter, r *http.Request, b *box) {
		name, err := b.machine.Path(r.URL.Query().Get("path"))
		if err == nil {
			err = f(w, r, b, name)
		}
		if err != nil {
			s.refuseFile(w, r, err)
		}
	}
}

func (s *Server) refuseFile(w http.ResponseWriter, r *http.Request, err error) {
	status, code := fileStatus(err)
	if s.Behaviour().EmptyFileErrs {
		w.WriteHeader(status)
		return
	}
	refuse(w, r, status, code, err.Error())
}

func fileStatus(err error) (int, string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 404, "FILE_NOT_FOUND"
	case errors.Is(err, fs.ErrPermission):
		return 403, "FILE_ACCESS_DENIED"
	}
	return 400, "INVALID_FILE_PATH"
}

func fileInfo(name string, info fs.FileInfo) any {
	return map[string]any{
		"name": info.Name(), "path": name, "size": info.Size(), "mode": info.Mode().String(),
		"permissions": fmt.Sprintf("%04o", info.Mode().Perm()), "owner": "1000", "group": "1000",
		"isDir": info.IsDir(), "modTime": info.ModTime().UTC().Format(time.RFC3339),
		"modifiedAt": info.ModTime().UTC().Format(time.RFC3339),
	}
}

// readable opens the regular file name if the sandbox's user may read it.
func readable(name string) (*os.File, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", name)
	case info.Mode()&0o400 == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return os.Open(name)
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, b *box) {
	s.withPath(func(w http.ResponseWriter, r *http.Request, b *box, name string) error {
		f, err := readable(name)
		if err != nil {
			return err
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		if s.Behaviour().IgnoreRange {
			r.Header.Del("Range")
		}
		http.ServeContent(w, r, "", time.Time{}, f)
		return nil
	})(w, r, b)
}

// makeDir makes a directory and its parents, all owned by the sandbox's user.
func (b *box) makeDir(name string) error {
	if info, err := os.Stat(name); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", name)
		}
		return nil
	}
	if err := b.makeDir(filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return b.machine.Own(name)
}

// upload takes pairs of parts: files[N].path, then files[N].file.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, b *box) {
	parts, err := r.MultipartReader()
	if err != nil {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "multipart expected")
		return
	}
	paths := map[string]string{}
	files, failures := []any{}, []string{}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			failures = append(failures, err.Error())
			break
		}
		index, kind, _ := strings.Cut(strings.TrimPrefix(part.FormName(), "files["), "].")
		switch kind {
		case "path":
			text, _ := io.ReadAll(io.LimitReader(part, 64<<10))
			paths[index] = string(text)
		case "file":
			name, ok := paths[index]
			if !ok {
				failures = append(failures, "file part "+index+" before its path")
				continue
			}
			n, err := b.save(name, part)
			if err != nil {
				failures = append(failures, name+": "+err.Error())
				continue
			}
			files = append(files, map[string]any{"path": name, "bytes": n})
		}
	}
	if len(failures) > 0 || len(files) == 0 {
		emulate.Reply(w, 400, map[string]any{"errors": failures, "files": files})
		return
	}
	emulate.Reply(w, 200, map[string]any{"files": files})
}

func (b *box) save(name string, r io.Reader) (int64, error) {
	name, err := b.machine.Path(name)
	if err != nil {
		return 0, err
	}
	if err := b.makeDir(filepath.Dir(name)); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, r)
	return n, errors.Join(err, f.Close(), b.machine.Own(name))
}

// bulkDownload answers 200 whatever becomes of the single files.
func (s *Server) bulkDownload(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Paths []string `json:"paths"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Paths) == 0 {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "paths are required")
		return
	}
	form := multipart.NewWriter(w)
	form.SetBoundary("DAYTONA-FILE-BOUNDARY")
	w.Header().Set("Content-Type", form.FormDataContentType())
	w.WriteHeader(200)
	for _, asked := range body.Paths {
		name, err := b.machine.Path(asked)
		var f *os.File
		if err == nil {
			f, err = readable(name)
		}
		kind, media := "file", "application/octet-stream"
		if err != nil {
			kind, media = "error", "application/json"
		}
		part, perr := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", kind, asked)},
			"Content-Type":        {media},
		})
		switch {
		case perr != nil:
		case err != nil:
			status, code := fileStatus(err)
			json.NewEncoder(part).Encode(map[string]any{"statusCode": status, "message": err.Error(), "code": code})
		default:
			io.Copy(part, f)
		}
		if f != nil {
			f.Close()
		}
	}
	form.Close()
}
