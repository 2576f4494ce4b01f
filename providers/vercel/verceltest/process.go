package verceltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// A command is one process of a session.
type command struct {
	id      string
	session *session
	name    string
	args    []string
	dir     string
	begin   time.Time
	took    atomic.Int64 // nanoseconds
	run     *machine.Running

	mu    sync.Mutex
	lines []line
	more  chan struct{} // closed when there is more
	part  map[string][]byte
}

// A line is a piece of output: text, as the service has it.
type line struct {
	Data   any    `json:"data"`
	Stream string `json:"stream"`
}

// An output writes one stream of a command into its log.
type output struct {
	c      *command
	stream string
}

func (o output) Write(p []byte) (int, error) {
	n := len(p)
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	// A character is never in two pieces, unless it never ends.
	p = append(o.c.part[o.stream], p...)
	cut := len(p) - incomplete(p)
	o.c.part[o.stream] = slices.Clone(p[cut:])
	o.c.add(o.stream, p[:cut])
	return n, nil
}

// add appends to the log. The caller holds mu.
func (c *command) add(stream string, p []byte) {
	if len(p) > 0 {
		c.lines = append(c.lines, line{strings.ToValidUTF8(string(p), "\ufffd"), stream})
	}
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// from returns the lines from the n-th on, and what is closed when there are more.
func (c *command) from(n int) ([]line, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return c.lines[n:], c.more
}

func (s *Server) processes(mux *http.ServeMux) {
	const base = "/v2/sandboxes/sessions/{sid}/cmd"
	waited, detached := s.Handle("run", s.admit, s.inside(s.start)), s.Handle("start", s.admit, s.inside(s.start))
	mux.HandleFunc("POST "+base, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Wait bool `json:"wait"`
		}
		if json.Unmarshal(body, &asked); asked.Wait {
			waited(w, r)
		} else {
			detached(w, r)
		}
	})
	s.handle(mux, "commands", "GET "+base, s.inside(func(w http.ResponseWriter, r *http.Request, x *session) {
		x.mu.Lock()
		defer x.mu.Unlock()
		list := []any{}
		for _, c := range x.commands {
			list = append(list, s.show(c))
		}
		reply(w, map[string]any{"commands": list})
	}))
	s.handle(mux, "command", "GET "+base+"/{cid}", s.withCommand(s.getCommand))
	s.handle(mux, "logs", "GET "+base+"/{cid}/logs", s.withCommand(s.logs))
	s.handle(mux, "kill", "POST "+base+"/{cid}/kill", s.withCommand(s.kill))
}

// inside finds the running session of a request. f runs without locks.
func (s *Server) inside(f func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		x := s.session(r.PathValue("sid"))
		status := ""
		if x != nil {
			status = x.status
		}
		s.mu.Unlock()
		switch {
		case x == nil:
			refuse(w, 404, "not_found", "Sandbox session not found.")
		case status != "running":
			refuseStopped(w, status)
		default:
			f(w, r, x)
		}
	}
}

func (s *Server) withCommand(f func(http.ResponseWriter, *http.Request, *command)) http.HandlerFunc {
	return s.inside(func(w http.ResponseWriter, r *http.Request, x *session) {
		c := x.command(r.PathValue("cid"))
		if c == nil {
			refuse(w, 404, "not_found", "Command not found.")
			return
		}
		f(w, r, c)
	})
}

func (x *session) command(id string) *command {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.commands {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (c *command) ended() bool {
	select {
	case <-c.run.Done():
		return true
	default:
		return false
	}
}

// show is c as the service shows it.
func (s *Server) show(c *command) map[string]any {
	fields := map[string]any{
		"id": c.id, "name": c.name, "args": c.args, "cwd": c.dir, "sessionId": c.session.id, "startedAt": ms(c.begin), "exitCode": nil,
	}
	if c.ended() {
		fields["durationMs"] = time.Duration(c.took.Load()).Milliseconds()
		if exit, _ := c.run.Wait(); !s.Behaviour().NoExitCode {
			fields["exitCode"] = exit
		}
	}
	return fields
}

// start runs a program. A waited one is answered by its output and its end.
func (s *Server) start(w http.ResponseWriter, r *http.Request, x *session) {
	var body struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Dir     string            `json:"cwd"`
		Env     map[string]string `json:"env"`
		Sudo    bool              `json:"sudo"`
		Wait    bool              `json:"wait"`
		Logs    bool              `json:"logs"`
		Timeout int64             `json:"timeout"`
	}
	if !read(w, r, &body) {
		return
	}
	if body.Command == "" {
		refuse(w, 400, "bad_request", "`command` is required")
		return
	}
	const most = 5 * time.Hour
	timeout := time.Duration(body.Timeout) * time.Millisecond
	if timeout < 0 || timeout > most {
		refuse(w, 400, "bad_request", "`timeout` should be <= 18000000")
		return
	}
	c := &command{
		id: identity("cmd_", 28, hexa), session: x, name: body.Command, args: append([]string{}, body.Args...),
		dir: body.Dir, begin: s.cfg.Now(), part: map[string][]byte{},
	}
	disk := x.box.disk
	if c.dir == "" {
		c.dir = disk.Dir()
	}
	if info, err := os.Stat(c.dir); err != nil || !info.IsDir() {
		refuse(w, 400, "bad_request", "[invalid_argument] chdir "+c.dir+": no such file or directory")
		return
	}
	env := map[string]string{}
	if given, ok := x.box.asked["env"].(map[string]any); ok {
		for k, v := range given {
			env[k], _ = v.(string)
		}
	}
	maps.Copy(env, body.Env)
	if body.Sudo {
		// The emulator's processes are never root; only the home is another.
		env["HOME"] = disk.Root()
	}
	p := machine.Process{Args: append([]string{body.Command}, body.Args...), Dir: c.dir, Stdout: output{c, "stdout"}, Stderr: output{c, "stderr"}}
	for k, v := range env {
		p.Env = append(p.Env, k+"="+v)
	}
	begin := time.Now()
	var err error
	if c.run, err = disk.Start(p); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			refuse(w, 400, "executable_not_found", "[invalid_argument] executable file not found in $PATH: "+body.Command)
			return
		}
		refuse(w, 400, "bad_request", "[invalid_argument] cannot start: "+err.Error())
		return
	}
	x.mu.Lock()
	x.commands = append(x.commands, c)
	x.mu.Unlock()
	go func() {
		if timeout > 0 {
			t := time.NewTimer(timeout)
			defer t.Stop()
			select {
			case <-t.C:
				kill(c.run.PID(), 9)
			case <-c.run.Done():
			}
		}
		<-c.run.Done()
		c.mu.Lock()
		for stream, rest := range c.part {
			c.add(stream, rest)
		}
		c.took.Store(max(1, int64(time.Since(begin))))
		c.add("", nil)
		c.mu.Unlock()
	}()
	if s.Due(func(b *Behaviour) *int { return &b.EmptyStarts }) {
		w.WriteHeader(200)
		return
	}
	if !body.Wait {
		reply(w, map[string]any{"command": s.show(c)})
		return
	}
	send, ok := s.stream(w, r)
	first := s.show(c)
	first["exitCode"] = nil
	delete(first, "durationMs")
	send(map[string]any{"command": first})
	if s.follow(r, c, send, body.Logs, ok) && !s.Behaviour().ShortStreams {
		send(map[string]any{"command": s.show(c)})
	}
}

// stream begins an answer of lines. It returns what sends one and whether an
// error is due in it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) (send func(any), broken bool) {
	broken = s.Due(func(b *Behaviour) *int { return &b.StreamErrors })
	behave := s.Behaviour()
	// Exactly this type: the service's own client accepts no other.
	w.Header()["Content-Type"] = []string{"application/x-ndjson"}
	if behave.Charset {
		w.Header()["Content-Type"] = []string{"application/x-ndjson; charset=utf-8"}
	}
	w.WriteHeader(200)
	flush := http.NewResponseController(w)
	flush.Flush()
	encode := json.NewEncoder(w)
	if behave.StrangeLines {
		encode.Encode(map[string]any{"stream": "heartbeat", "data": "."})
		encode.Encode(map[string]any{"ping": 1})
	}
	return func(v any) {
		encode.Encode(v)
		flush.Flush()
	}, broken
}

// follow sends the output of c, if it is wanted, until c has ended. It reports
// whether that came to its end.
func (s *Server) follow(r *http.Request, c *command, send func(any), output, broken bool) bool {
	var edge <-chan time.Time
	if s.cfg.EdgeCut > 0 {
		t := time.NewTimer(s.cfg.EdgeCut)
		defer t.Stop()
		edge = t.C
	}
	stop := time.NewTicker(20 * time.Millisecond)
	defer stop.Stop()
	for n := 0; ; {
		ended := c.ended()
		if ended {
			// The last pieces are added after the end.
			for c.took.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		lines, more := c.from(n)
		for _, l := range lines {
			if output {
				send(l)
			}
			n++
			if broken {
				send(line{map[string]any{"code": "sandbox_stream_closed", "message": "the stream was closed"}, "error"})
				return false
			}
		}
		if ended && len(lines) == 0 {
			return true
		}
		if ended {
			continue
		}
		select {
		case <-more:
		case <-c.run.Done():
		case <-stop.C:
			s.mu.Lock()
			alive := s.session(c.session.id) != nil && c.session.status == "running"
			s.mu.Unlock()
			if !alive {
				send(line{map[string]any{"code": "sandbox_stopped", "message": "Sandbox has stopped execution and is no longer available"}, "error"})
				return false
			}
		case <-edge:
			panic(http.ErrAbortHandler)
		case <-s.Done():
			return false
		case <-r.Context().Done():
			return false
		}
	}
}

func (s *Server) getCommand(w http.ResponseWriter, r *http.Request, c *command) {
	if r.URL.Query().Get("wait") == "true" {
		var edge <-chan time.Time
		if s.cfg.EdgeCut > 0 {
			t := time.NewTimer(s.cfg.EdgeCut)
			defer t.Stop()
			edge = t.C
		}
		select {
		case <-c.run.Done():
		case <-edge:
			panic(http.ErrAbortHandler)
		case <-s.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
	reply(w, map[string]any{"command": s.show(c)})
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request, c *command) {
	if s.Behaviour().MissingLogs && c.ended() {
		refuse(w, 404, "not_found", "Command logs not found.")
		return
	}
	send, broken := s.stream(w, r)
	s.follow(r, c, send, true, broken)
}

// kill signals the command's own process and no other.
func (s *Server) kill(w http.ResponseWriter, r *http.Request, c *command) {
	var body struct {
		Signal int `json:"signal"`
	}
	if !read(w, r, &body) {
		return
	}
	if !slices.Contains([]int{1, 2, 3, 9, 15, 18, 19}, body.Signal) {
		refuse(w, 400, "bad_request", "`signal` is not valid")
		return
	}
	fields := s.show(c)
	if !c.ended() {
		kill(c.run.PID(), body.Signal)
	}
	reply(w, map[string]any{"command": fields})
}

// incomplete returns how many bytes of a character that has only begun p ends with.
func incomplete(p []byte) int {
	for n := 1; n <= min(3, len(p)); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
