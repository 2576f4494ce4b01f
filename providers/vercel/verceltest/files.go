package verceltest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/talkops-ai/talkops/sdk/machine"
)

func (s *Server) files(mux *http.ServeMux) {
	const base = "/v2/sandboxes/sessions/{sid}/fs/"
	s.handle(mux, "write", "POST "+base+"write", s.inside(write))
	s.handle(mux, "read", "POST "+base+"read", s.inside(load))
	s.handle(mux, "mkdir", "POST "+base+"mkdir", s.inside(mkdir))
}

// resolve is the file that name means in dir, or in the home directory.
func resolve(disk *machine.Machine, dir, name string) (string, error) {
	if name == "" {
		return "", errors.New("path must not be empty")
	}
	if !filepath.IsAbs(name) {
		if dir == "" {
			dir = disk.Dir()
		}
		name = filepath.Join(dir, name)
	}
	return disk.Path(name)
}

// makeAll makes a directory and its parents for the user.
func makeAll(disk *machine.Machine, name string) error {
	if info, err := os.Stat(name); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: errors.New("not a directory")}
		}
		return nil
	}
	if err := makeAll(disk, filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Own(name)
}

// write extracts a gzip tar below the directory of x-cwd. Owners are ignored.
func write(w http.ResponseWriter, r *http.Request, x *session) {
	disk := x.box.disk
	fail := func(err error) { refuse(w, 400, "file_error", err.Error()) }
	if r.Header.Get("Content-Type") != "application/gzip" {
		refuse(w, 400, "bad_request", "content-type must be application/gzip")
		return
	}
	zr, err := gzip.NewReader(r.Body)
	if err != nil {
		fail(err)
		return
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fail(err)
			return
		}
		name, err := resolve(disk, r.Header.Get("X-Cwd"), h.Name)
		if err == nil {
			if h.Typeflag == tar.TypeDir {
				err = makeAll(disk, name)
			} else {
				err = save(disk, name, fs.FileMode(h.Mode).Perm(), tr)
			}
		}
		if err != nil {
			fail(fmt.Errorf("error writing %s: %w", h.Name, err))
			return
		}
	}
	io.Copy(io.Discard, r.Body)
	reply(w, map[string]any{})
}

func save(disk *machine.Machine, name string, mode fs.FileMode, r io.Reader) error {
	if err := makeAll(disk, filepath.Dir(name)); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o644
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode), f.Close(), disk.Own(name))
}

func load(w http.ResponseWriter, r *http.Request, x *session) {
	var body struct {
		Path string `json:"path"`
		Dir  string `json:"cwd"`
	}
	if !read(w, r, &body) {
		return
	}
	name, err := resolve(x.box.disk, body.Dir, body.Path)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, 404, "not_found", "File not found.")
		return
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", name)
	case err == nil && info.Mode()&0o400 == 0:
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		refuse(w, 400, "file_error", err.Error())
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	io.Copy(w, f)
}

func mkdir(w http.ResponseWriter, r *http.Request, x *session) {
	var body struct {
		Path      string `json:"path"`
		Dir       string `json:"cwd"`
		Recursive bool   `json:"recursive"`
	}
	if !read(w, r, &body) {
		return
	}
	disk := x.box.disk
	name, err := resolve(disk, body.Dir, body.Path)
	switch {
	case err != nil:
	case body.Recursive:
		err = makeAll(disk, name)
	default:
		if err = os.Mkdir(name, 0o755); err == nil {
			err = disk.Own(name)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		refuse(w, 400, "file_error", "error creating directory: "+name+": File exists")
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, 400, "file_error", "error creating directory: "+name+": No such file or directory")
	case err != nil:
		refuse(w, 400, "file_error", "error creating directory: "+err.Error())
	default:
		reply(w, map[string]any{})
	}
}
