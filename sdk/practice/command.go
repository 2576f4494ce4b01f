package practice

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A command is one program that was started in a box.
type command struct {
	run   *machine.Running
	input *io.PipeWriter // nil: it has none

	mu     sync.Mutex
	pieces []piece
	exit   *int
	more   chan struct{} // closed and replaced when there is more to tell
}

type piece struct {
	stream string
	data   []byte
}

// tell adds to what output shows.
func (c *command) tell(p *piece, exit *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != nil {
		c.pieces = append(c.pieces, *p)
	}
	if exit != nil {
		c.exit = exit
	}
	close(c.more)
	c.more = make(chan struct{})
}

// A teller is one output of a command.
type teller struct {
	c      *command
	stream string
}

func (t teller) Write(p []byte) (int, error) {
	t.c.tell(&piece{t.stream, bytes.Clone(p)}, nil)
	return len(p), nil
}

func (s *Server) start(w http.ResponseWriter, r *http.Request, b *box) {
	var want struct {
		Args  []string          `json:"args"`
		Dir   string            `json:"dir"`
		Env   map[string]string `json:"env"`
		Stdin bool              `json:"stdin"`
	}
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil || len(want.Args) == 0 {
		refuse(w, http.StatusBadRequest, "bad_request", "a command needs args")
		return
	}
	if want.Dir != "" {
		info, err := os.Stat(want.Dir)
		switch {
		case os.IsNotExist(err):
			refuse(w, http.StatusNotFound, "no_such_file", "there is no directory "+want.Dir)
			return
		case err != nil || !info.IsDir():
			refuse(w, http.StatusBadRequest, "not_a_directory", want.Dir+" is not a directory")
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := r.PathValue("command")
	if b.commands[id] != nil {
		refuse(w, http.StatusConflict, "exists", "the command was started before")
		return
	}
	c := &command{more: make(chan struct{})}
	p := machine.Process{
		// A shell that becomes the program says what is wrong with it: 126 and 127.
		Args: append([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, want.Args...),
		Dir:  want.Dir, Stdout: teller{c, "stdout"}, Stderr: teller{c, "stderr"},
	}
	for k, v := range b.env {
		p.Env = append(p.Env, k+"="+v)
	}
	for k, v := range want.Env {
		p.Env = append(p.Env, k+"="+v)
	}
	var input *io.PipeReader
	if want.Stdin {
		input, c.input = io.Pipe()
		p.Stdin = input
	}
	var err error
	if c.run, err = b.machine.Start(p); err != nil {
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	b.commands[id] = c
	go func() {
		exit, err := c.run.Wait()
		if input != nil {
			input.Close()
		}
		if err != nil {
			exit = 255
		}
		c.tell(nil, &exit)
	}()
	reply(w, http.StatusCreated, map[string]string{"id": id})
}

// command is the one a request names.
func (b *box) command(w http.ResponseWriter, r *http.Request) *command {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.commands[r.PathValue("command")]
	if c == nil {
		refuse(w, http.StatusNotFound, "no_such_command", "there is no command "+r.PathValue("command"))
	}
	return c
}

func (s *Server) stdin(w http.ResponseWriter, r *http.Request, b *box) {
	c := b.command(w, r)
	if c == nil {
		return
	}
	if c.input == nil {
		refuse(w, http.StatusConflict, "no_stdin", "the command was started without input")
		return
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, err := io.Copy(c.input, r.Body)
		c.input.CloseWithError(err)
	}()
	select {
	case <-copied:
	case <-c.run.Done():
		// The rest of an input that may never end is not waited for.
		http.NewResponseController(w).SetReadDeadline(time.Now())
		<-copied
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) output(w http.ResponseWriter, r *http.Request, b *box) {
	c := b.command(w, r)
	if c == nil {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	for n := 0; ; {
		c.mu.Lock()
		pieces, exit, more := c.pieces[n:], c.exit, c.more
		c.mu.Unlock()
		for _, p := range pieces {
			if enc.Encode(map[string]string{"stream": p.stream, "data": base64.StdEncoding.EncodeToString(p.data)}) != nil {
				return
			}
		}
		n += len(pieces)
		if exit != nil {
			enc.Encode(map[string]int{"exit": *exit})
			return
		}
		flush.Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) kill(w http.ResponseWriter, r *http.Request, b *box) {
	if c := b.command(w, r); c != nil {
		c.run.Kill(2 * time.Second)
		w.WriteHeader(http.StatusNoContent)
	}
}

// Statuses with which the scripts for files end, and what they mean.
var meanings = map[int]struct {
	status        int
	code, message string
}{
	81: {http.StatusNotFound, "no_such_file", "no such file"},
	82: {http.StatusConflict, "is_directory", "it is a directory"},
	83: {http.StatusConflict, "not_a_file", "it is not a regular file"},
	84: {http.StatusForbidden, "permission_denied", "permission denied"},
	85: {http.StatusBadRequest, "bad_path", "a parent is not a directory"},
}

const readScript = `[ -e "$1" ] || exit 81
[ -d "$1" ] && exit 82
[ -f "$1" ] || exit 83
[ -r "$1" ] || exit 84
exit 0`

const writeScript = `f=$2
if [ -L "$f" ]; then f=$(readlink -f "$f"; echo x); f=${f%?x}; fi
[ -d "$f" ] && exit 82
mode=$3
if [ -e "$f" ]; then
	[ -f "$f" ] || exit 83
	[ -w "$f" ] || exit 84
	mode=$(stat -c %a "$f") || exit 1
fi
dir=${f%/*}
dir=${dir:-/}
above=$dir
while [ ! -e "$above" ]; do above=${above%/*}; above=${above:-/}; done
[ -d "$above" ] || exit 85
[ -w "$above" ] && [ -x "$above" ] || exit 84
mkdir -p "$dir" && cp "$1" "$dir/.new-${1##*/}" && chmod "$mode" "$dir/.new-${1##*/}" && mv -f "$dir/.new-${1##*/}" "$f" || { rm -f "$dir/.new-${1##*/}"; exit 1; }`

// script runs one of them and answers if it fails.
func (b *box) script(w http.ResponseWriter, script string, args ...string) bool {
	var stderr bytes.Buffer
	p, err := b.machine.Start(machine.Process{Args: append([]string{"/bin/sh", "-c", script, "sh"}, args...), Dir: "/", Stderr: &stderr})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return false
	}
	exit, err := p.Wait()
	if exit == 0 && err == nil {
		return true
	}
	m, ok := meanings[exit]
	if !ok {
		m.status, m.code, m.message = http.StatusInternalServerError, "internal", fmt.Sprintf("ended with %d: %s", exit, strings.TrimSpace(stderr.String()))
	}
	refuse(w, m.status, m.code, m.message)
	return false
}

func (s *Server) readFile(w http.ResponseWriter, r *http.Request, b *box) {
	name, ok := b.path(w, r)
	if !ok || !b.script(w, readScript, name) {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if info, err := os.Stat(name); err == nil && info.Size() > 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	}
	p, err := b.machine.Start(machine.Process{Args: []string{"cat", name}, Dir: "/", Stdout: w})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	if exit, err := p.Wait(); exit != 0 || err != nil {
		panic(http.ErrAbortHandler) // the answer has begun: it must not look whole
	}
}

func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, b *box) {
	name, ok := b.path(w, r)
	if !ok {
		return
	}
	mode := r.URL.Query().Get("mode")
	if n, err := strconv.ParseUint(mode, 8, 9); err != nil || n == 0 {
		mode = "0644"
	}
	f, err := os.CreateTemp(b.machine.Temp(), "upload-")
	if err != nil {
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r.Body)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = b.machine.Own(f.Name())
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "cut", "the upload broke off")
		return
	}
	if b.script(w, writeScript, filepath.Clean(f.Name()), name, mode) {
		w.WriteHeader(http.StatusNoContent)
	}
}
