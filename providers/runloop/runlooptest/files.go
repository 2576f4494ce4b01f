package runlooptest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func (s *Server) files(mux *http.ServeMux) {
	s.handle(mux, "upload", "POST /v1/devboxes/{id}/upload_file", s.inside(upload))
	s.handle(mux, "download", "POST /v1/devboxes/{id}/download_file", s.inside(download))
	s.handle(mux, "write", "POST /v1/devboxes/{id}/write_file_contents", s.inside(writeText))
	s.handle(mux, "read", "POST /v1/devboxes/{id}/read_file_contents", s.inside(readText))
}

// path is the file that name means in b.
func (b *box) path(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = rest
	}
	if name == "" {
		return "", errors.New("path must not be empty")
	}
	return b.machine.Path(name)
}

func refuseFile(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, 404, "No such file or directory: "+err.Error())
	case errors.Is(err, fs.ErrPermission):
		refuse(w, 403, "Permission denied: "+err.Error())
	default:
		refuse(w, 400, err.Error())
	}
}

// save writes a file, whose directory must exist.
func (b *box) save(name string, r io.Reader) error {
	name, err := b.path(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close(), b.machine.Own(name))
}

// load opens a file as the devbox's user could.
func (b *box) load(name string) (*os.File, fs.FileInfo, error) {
	name, err := b.path(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	case info.Mode()&0o400 == 0:
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	f, err := os.Open(name)
	return f, info, err
}

// upload takes the part path and then the part file.
func upload(w http.ResponseWriter, r *http.Request, b *box) {
	parts, err := r.MultipartReader()
	if err != nil {
		refuse(w, 400, "multipart expected")
		return
	}
	name := ""
	for {
		part, err := parts.NextPart()
		if err != nil {
			refuse(w, 400, "no file was sent")
			return
		}
		switch part.FormName() {
		case "path":
			data, _ := io.ReadAll(io.LimitReader(part, 64<<10))
			name = string(data)
		case "file":
			if name == "" {
				refuse(w, 400, "path must come before file")
				return
			}
			if err := b.save(name, part); err != nil {
				refuseFile(w, err)
				return
			}
			reply(w, map[string]any{})
			return
		}
	}
}

func download(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Path string `json:"path"`
	}
	if !read(w, r, &body) {
		return
	}
	f, info, err := b.load(body.Path)
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	io.CopyN(w, f, info.Size())
}

func writeText(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Path     string `json:"file_path"`
		Contents string `json:"contents"`
	}
	if !read(w, r, &body) {
		return
	}
	answer := map[string]any{"devbox_id": b.id, "exit_status": 0, "stdout": "", "stderr": ""}
	if err := b.save(body.Path, strings.NewReader(body.Contents)); err != nil {
		answer["exit_status"], answer["stderr"] = 1, err.Error()
	}
	reply(w, answer)
}

func readText(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Path string `json:"file_path"`
	}
	if !read(w, r, &body) {
		return
	}
	f, _, err := b.load(body.Path)
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		refuseFile(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, text(data))
}
