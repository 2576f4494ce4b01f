package e2btest

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
)

// signed reports whether a request for a file has a signature made with token.
func signed(r *http.Request, token string) bool {
	q := r.URL.Query()
	if r.URL.Path != "/files" || q.Get("signature") == "" || r.Header.Get("X-Access-Token") != "" {
		return false
	}
	op := "read"
	if r.Method == http.MethodPost {
		op = "write"
	}
	text := strings.Join([]string{q.Get("path"), op, q.Get("username"), token}, ":")
	if expiry := q.Get("signature_expiration"); expiry != "" {
		text += ":" + expiry
		if at, err := strconv.ParseInt(expiry, 10, 64); err != nil || time.Now().Unix() > at {
			return false
		}
	}
	sum := sha256.Sum256([]byte(text))
	return q.Get("signature") == "v1_"+base64.RawStdEncoding.EncodeToString(sum[:])
}

// path is the file that name means in b; relative ones begin at home.
func (b *box) path(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = rest
	}
	return b.machine.Path(name)
}

// refuseFile answers as the daemon does for what went wrong.
func refuseFile(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, 404, "path not found: "+err.Error())
	case errors.Is(err, errDir):
		refuse(w, 400, err.Error())
	case errors.Is(err, syscall.ENOSPC):
		refuse(w, 507, "not enough disk space available")
	default:
		refuse(w, 500, err.Error())
	}
}

var errDir = errors.New("path is a directory")

// download gives a file, or a part of it.
func (s *Server) download(w http.ResponseWriter, r *http.Request, b *box) {
	if user := r.URL.Query().Get("username"); user != "" && user != "user" && user != "root" {
		refuse(w, 401, "error looking up user '"+user+"'")
		return
	}
	name, err := b.path(r.URL.Query().Get("path"))
	if err != nil {
		refuseFile(w, err)
		return
	}
	f, err := os.Open(name)
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		refuseFile(w, err)
		return
	case info.IsDir():
		refuseFile(w, errDir)
		return
	}
	ranged := r.Header.Get("Range") != ""
	if s.Behaviour().IgnoreRange {
		r.Header.Del("Range")
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if ranged || r.Header.Get("Accept-Encoding") == "identity" || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		http.ServeContent(w, r, "", time.Time{}, f)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zw := gzip.NewWriter(w)
	io.Copy(zw, f)
	zw.Close()
}

// upload takes a body that is the file, or a form of several. A file is cut short
// before it is written.
func upload(w http.ResponseWriter, r *http.Request, b *box) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zr, err := gzip.NewReader(r.Body)
		if err != nil {
			refuse(w, 400, "the body is not gzip")
			return
		}
		body = zr
	}
	name := r.URL.Query().Get("path")
	written := []any{}
	save := func(name string, from io.Reader) error {
		full, err := b.save(name, from)
		if err == nil {
			written = append(written, map[string]string{"path": full, "name": filepath.Base(full), "type": "file"})
		}
		return err
	}
	switch kind := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/octet-stream"):
		if olderThan(b.version) {
			refuse(w, 400, "request Content-Type isn't multipart/form-data")
			return
		}
		if err := save(name, body); err != nil {
			refuseFile(w, err)
			return
		}
	case strings.HasPrefix(kind, "multipart/form-data"):
		form, err := r.MultipartReader()
		if err != nil {
			refuse(w, 400, err.Error())
			return
		}
		for {
			part, err := form.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				refuse(w, 500, err.Error())
				return
			}
			if part.FormName() != "file" {
				continue
			}
			target := name
			if target == "" {
				target = filename(part.Header.Get("Content-Disposition"))
			}
			if err := save(target, part); err != nil {
				refuseFile(w, err)
				return
			}
		}
	default:
		refuse(w, 415, "unsupported media type")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	json.NewEncoder(w).Encode(written)
}

// olderThan reports whether a daemon takes no plain bodies yet.
func olderThan(version string) bool {
	var major, minor, patch int
	fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return major == 0 && (minor < 5 || minor == 5 && patch < 7)
}

// filename is that of a part with its directories, which multipart leaves out.
func filename(disposition string) string {
	_, rest, _ := strings.Cut(disposition, `filename="`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func (b *box) save(name string, from io.Reader) (string, error) {
	full, err := b.path(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return "", errDir
	}
	if err := b.parents(filepath.Dir(full)); err != nil {
		return "", err
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, from)
	return full, errors.Join(err, f.Close(), b.machine.Own(full))
}

// parents makes a directory and what is above it.
func (b *box) parents(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := b.parents(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return b.machine.Own(dir)
}

// entry is a file as the daemon shows it: a link with its target's type and mode.
func entry(name string) (map[string]any, error) {
	own, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{"name": own.Name(), "path": name, "size": strconv.FormatInt(own.Size(), 10), "owner": "user", "group": "user"}
	info := own
	if own.Mode()&fs.ModeSymlink != 0 {
		fields["symlinkTarget"], _ = os.Readlink(name)
		if target, err := os.Stat(name); err == nil {
			info = target
		}
	}
	switch {
	case info.IsDir():
		fields["type"] = "FILE_TYPE_DIRECTORY"
	case info.Mode()&fs.ModeSymlink != 0:
		fields["type"] = "FILE_TYPE_SYMLINK"
	default:
		fields["type"] = "FILE_TYPE_FILE"
	}
	fields["mode"] = int(info.Mode().Perm())
	fields["permissions"] = info.Mode().String()
	fields["modifiedTime"] = info.ModTime().UTC().Format(time.RFC3339Nano)
	return fields, nil
}

// A target is what the calls about files are given.
type target struct {
	Path        string `json:"path"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Depth       int    `json:"depth"`
}

// named reads the request and finds the files it names.
func named(w http.ResponseWriter, r *http.Request, b *box) (t target, ok bool) {
	err := json.NewDecoder(r.Body).Decode(&t)
	for _, name := range []*string{&t.Path, &t.Source, &t.Destination} {
		if err == nil && *name != "" {
			*name, err = b.path(*name)
		}
	}
	if err != nil {
		refuseRPC(w, 400, "invalid_argument", err.Error())
	}
	return t, err == nil
}

// answer gives the entry of name, or why there is none.
func answer(w http.ResponseWriter, name string, err error) {
	var e map[string]any
	if err == nil {
		e, err = entry(name)
	}
	switch {
	case err == nil:
		emulate.Reply(w, 200, map[string]any{"entry": e})
	case errors.Is(err, fs.ErrNotExist):
		refuseRPC(w, 404, "not_found", "path not found: "+err.Error())
	default:
		refuseRPC(w, 500, "internal", err.Error())
	}
}

func stat(w http.ResponseWriter, r *http.Request, b *box) {
	if t, ok := named(w, r, b); ok {
		answer(w, t.Path, nil)
	}
}

func makeDir(w http.ResponseWriter, r *http.Request, b *box) {
	t, ok := named(w, r, b)
	if !ok {
		return
	}
	info, err := os.Stat(t.Path)
	switch {
	case err == nil && info.IsDir():
		refuseRPC(w, 409, "already_exists", "directory already exists: "+t.Path)
	case err == nil:
		refuseRPC(w, 400, "invalid_argument", "path already exists but it is not a directory: "+t.Path)
	default:
		answer(w, t.Path, b.parents(t.Path))
	}
}

func move(w http.ResponseWriter, r *http.Request, b *box) {
	t, ok := named(w, r, b)
	if !ok {
		return
	}
	_, err := os.Lstat(t.Source)
	if err == nil {
		err = b.parents(filepath.Dir(t.Destination))
	}
	if err == nil {
		err = os.Rename(t.Source, t.Destination)
	}
	answer(w, t.Destination, err)
}

func listDir(w http.ResponseWriter, r *http.Request, b *box) {
	t, ok := named(w, r, b)
	if !ok {
		return
	}
	info, err := os.Stat(t.Path)
	switch {
	case err != nil:
		refuseRPC(w, 404, "not_found", "path not found: "+t.Path)
		return
	case !info.IsDir():
		refuseRPC(w, 400, "invalid_argument", "path is not a directory: "+t.Path)
		return
	}
	entries := []any{}
	filepath.WalkDir(t.Path, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(t.Path, name)
		if err != nil || rel == "." {
			return nil
		}
		if e, err := entry(name); err == nil {
			entries = append(entries, e)
		}
		if d.IsDir() && strings.Count(rel, "/")+1 >= max(t.Depth, 1) {
			return filepath.SkipDir
		}
		return nil
	})
	list := map[string]any{}
	if len(entries) > 0 {
		list["entries"] = entries
	}
	emulate.Reply(w, 200, list)
}

// remove succeeds for what is not there.
func remove(w http.ResponseWriter, r *http.Request, b *box) {
	if t, ok := named(w, r, b); ok {
		if err := os.RemoveAll(t.Path); err != nil {
			refuseRPC(w, 500, "internal", err.Error())
			return
		}
		emulate.Reply(w, 200, struct{}{})
	}
}
