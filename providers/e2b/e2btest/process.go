package e2btest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A process is one that Start began. Its fields after mu are guarded by it.
type process struct {
	pid    int
	tag    string
	config config
	input  *os.File // nil: /dev/null

	mu        sync.Mutex
	listeners map[chan map[string]any]bool // get events from now on
	end       map[string]any               // nil while it runs
	endedAt   time.Time
}

type config struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Env  map[string]string `json:"envs,omitempty"`
	Dir  string            `json:"cwd,omitempty"`
}

// remembered is how long a process can be asked for after its end.
const remembered = 30 * time.Second

func (s *Server) daemon(mux *http.ServeMux) {
	mux.HandleFunc("GET /health", s.Handle("health", s.inside, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }))
	for name, f := range map[string]func(http.ResponseWriter, *http.Request, *box){
		"process.Process/Start": s.begin, "process.Process/Connect": s.follow, "process.Process/List": listProcesses,
		"process.Process/SendSignal": sendSignal, "process.Process/SendInput": sendInput, "process.Process/CloseStdin": closeStdin,
		"filesystem.Filesystem/Stat": stat, "filesystem.Filesystem/MakeDir": makeDir, "filesystem.Filesystem/Move": move,
		"filesystem.Filesystem/ListDir": listDir, "filesystem.Filesystem/Remove": remove,
	} {
		_, op, _ := strings.Cut(name, "/")
		mux.HandleFunc("POST /"+name, s.Handle(op, s.inside, s.within(f)))
	}
	mux.HandleFunc("GET /files", s.Handle("download", s.inside, s.within(s.download)))
	mux.HandleFunc("POST /files", s.Handle("upload", s.inside, s.within(upload)))
}

// boxOf finds the sandbox that a request to a daemon is for.
func (s *Server) boxOf(r *http.Request) *box {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(r.Header.Get("E2b-Sandbox-Id"))
	if b != nil && b.paused {
		return nil
	}
	return b
}

// inside admits a request to a daemon.
func (s *Server) inside(w http.ResponseWriter, r *http.Request) bool {
	b := s.boxOf(r)
	if b == nil {
		emulate.Reply(w, 502, map[string]any{"sandboxId": r.Header.Get("E2b-Sandbox-Id"), "message": "The sandbox was not found", "code": 502})
		return false
	}
	s.mu.Lock()
	token := b.token
	s.mu.Unlock()
	if token != "" && r.Header.Get("X-Access-Token") != token && !signed(r, token) && r.URL.Path != "/health" {
		refuseRPC(w, 401, "unauthenticated", "no valid access token given")
		return false
	}
	return true
}

func (s *Server) within(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if b := s.boxOf(r); b != nil {
			f(w, r, b)
		}
	}
}

func refuseRPC(w http.ResponseWriter, status int, code, message string) {
	emulate.Reply(w, status, map[string]any{"code": code, "message": message})
}

// A sender writes the messages of a stream.
type sender struct{ w http.ResponseWriter }

func (s sender) send(flags byte, v any) error {
	data, _ := json.Marshal(v)
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data)))
	if _, err := s.w.Write(append(head, data...)); err != nil {
		return err
	}
	s.w.(http.Flusher).Flush()
	return nil
}

func (s sender) event(e map[string]any) error { return s.send(0, map[string]any{"event": e}) }

func (s sender) fail(code, message string) {
	s.send(2, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// receive reads the one message of a request whose answer is a stream.
func receive(w http.ResponseWriter, r *http.Request, v any) (sender, bool) {
	if r.Header.Get("Content-Type") != "application/connect+json" {
		w.WriteHeader(415)
		return sender{}, false
	}
	w.Header().Set("Content-Type", "application/connect+json")
	out := sender{w}
	var head [5]byte
	_, err := io.ReadFull(r.Body, head[:])
	data := make([]byte, min(binary.BigEndian.Uint32(head[1:]), 4<<20))
	if err == nil {
		_, err = io.ReadFull(r.Body, data)
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		out.fail("invalid_argument", "the message cannot be read")
		return out, false
	}
	io.Copy(io.Discard, r.Body)
	return out, true
}

// begin starts a process and streams its events.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		Process config `json:"process"`
		Tag     string `json:"tag"`
		Stdin   *bool  `json:"stdin"`
	}
	out, ok := receive(w, r, &asked)
	if !ok {
		return
	}
	if user, _, given := r.BasicAuth(); given && user != "user" && user != "root" {
		out.fail("unauthenticated", "invalid username: '"+user+"'")
		return
	}
	dir := asked.Process.Dir
	if rest, home := strings.CutPrefix(dir, "~"); home {
		dir = b.machine.Dir() + rest
	}
	if dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			out.fail("invalid_argument", "cwd '"+dir+"' does not exist")
			return
		}
	}
	p, events, err := b.start(asked.Process, dir, asked.Tag, asked.Stdin == nil || *asked.Stdin)
	if err != nil {
		out.fail("internal", err.Error())
		return
	}
	limit, _ := strconv.ParseInt(r.Header.Get("Connect-Timeout-Ms"), 10, 64)
	p.stream(out, r, b, events, time.Duration(limit)*time.Millisecond)
}

// start begins a process, whose leader a shell becomes. Events has all of it.
func (b *box) start(c config, dir, tag string, stdin bool) (p *process, events chan map[string]any, err error) {
	p = &process{tag: tag, config: c, listeners: map[chan map[string]any]bool{}}
	run := machine.Process{Args: append([]string{"/bin/sh", "-c", `exec "$@"`, "sh", c.Cmd}, c.Args...), Dir: dir}
	run.Env = append(run.Env, "USER=user", "LOGNAME=user")
	for _, env := range []map[string]string{b.env, c.Env} {
		for k, v := range env {
			run.Env = append(run.Env, k+"="+v)
		}
	}
	var theirs, ours []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			theirs = append(theirs, w)
			ours = append(ours, r)
		}
		return r, w, err
	}
	// A child that has the pipes holds the end up.
	_, stdout, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	_, stderr, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	run.Stdout, run.Stderr = stdout, stderr
	if stdin {
		in, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		run.Stdin, p.input = in, w
		theirs = append(theirs, in)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	started, err := b.machine.Start(run)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	events = p.listen()
	p.pid = started.PID()
	b.processes = append(b.processes, p)
	var copies sync.WaitGroup
	for i, name := range []string{"stdout", "stderr"} {
		copies.Go(func() {
			defer ours[i].Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := ours[i].Read(buf)
				if n > 0 {
					p.tell(map[string]any{"data": map[string]any{name: append([]byte(nil), buf[:n]...)}})
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() {
		exit, err := started.Wait()
		copies.Wait()
		if p.input != nil {
			p.input.Close()
		}
		p.finish(exit, err)
	}()
	return p, events, nil
}

// listen gives the events of p from now on; it is closed at the end.
func (p *process) listen() chan map[string]any {
	events := make(chan map[string]any, 64)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == nil {
		p.listeners[events] = true
	} else {
		close(events)
	}
	return events
}

// finish tells the end. Values that are zero are left out, as the daemon does.
func (p *process) finish(exit int, err error) {
	end := map[string]any{"status": fmt.Sprintf("exit status %d", exit)}
	signal := map[int]string{128 + 9: "signal: killed", 128 + 15: "signal: terminated"}[exit]
	switch {
	case err != nil:
		end["error"] = err.Error()
	case signal != "":
		end["exitCode"], end["status"], end["error"] = -1, signal, signal
	case exit != 0:
		end["exited"], end["exitCode"] = true, exit
		end["error"] = end["status"]
	default:
		end["exited"] = true
	}
	p.mu.Lock()
	p.end, p.endedAt = end, time.Now()
	listeners := p.listeners
	p.listeners = nil
	p.mu.Unlock()
	for l := range listeners {
		close(l)
	}
}

// tell gives an event to who listens; with a slow listener it waits.
func (p *process) tell(e map[string]any) {
	p.mu.Lock()
	var all []chan map[string]any
	for l := range p.listeners {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		select {
		case l <- e:
		case <-time.After(10 * time.Second): // it has gone
		}
	}
}

// stream sends events of p to out until it ends, out breaks or limit, if it is not
// zero, is over: then the leader alone is killed.
func (p *process) stream(out sender, r *http.Request, b *box, events chan map[string]any, limit time.Duration) {
	defer func() {
		p.mu.Lock()
		delete(p.listeners, events)
		p.mu.Unlock()
		for { // nobody waits for a listener that has gone
			select {
			case _, open := <-events:
				if !open {
					return
				}
			default:
				return
			}
		}
	}()
	b.mu.Lock()
	cut := b.cut
	b.mu.Unlock()
	if out.event(map[string]any{"start": map[string]any{"pid": p.pid}}) != nil {
		return
	}
	every, _ := strconv.Atoi(r.Header.Get("Keepalive-Ping-Interval"))
	if every <= 0 {
		every = 90
	}
	ping := time.NewTicker(time.Duration(every) * time.Second)
	defer ping.Stop()
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	for {
		select {
		case e, open := <-events:
			if !open {
				p.mu.Lock()
				end := p.end
				p.mu.Unlock()
				out.event(map[string]any{"end": end})
				out.send(2, map[string]any{})
				return
			}
			if out.event(e) != nil {
				return
			}
		case <-ping.C:
			if out.event(map[string]any{"keepalive": map[string]any{}}) != nil {
				return
			}
		case <-over:
			kill(p.pid, false)
			out.fail("deadline_exceeded", "the process's time is up")
			return
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

// A selector names a process.
type selector struct {
	Process struct {
		PID int    `json:"pid"`
		Tag string `json:"tag"`
	} `json:"process"`
}

// find returns the process that is meant, while it is remembered. By a tag it stops
// at the first process that has another, as the daemon does.
func (b *box) find(s selector) *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes {
		p.mu.Lock()
		known := p.end == nil || time.Since(p.endedAt) < remembered
		p.mu.Unlock()
		switch {
		case !known:
		case s.Process.PID != 0 && p.pid == s.Process.PID:
			return p
		case s.Process.PID == 0 && p.tag != "" && p.tag != s.Process.Tag:
			return nil
		case s.Process.PID == 0 && p.tag == s.Process.Tag:
			return p
		}
	}
	return nil
}

// follow streams what happens to a process from now on.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, b *box) {
	var asked selector
	out, ok := receive(w, r, &asked)
	if !ok {
		return
	}
	p := b.find(asked)
	if p == nil {
		out.fail("not_found", "process not found")
		return
	}
	p.stream(out, r, b, p.listen(), 0)
}

func listProcesses(w http.ResponseWriter, r *http.Request, b *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []any{}
	for _, p := range b.processes {
		p.mu.Lock()
		if p.end == nil {
			fields := map[string]any{"pid": p.pid, "config": p.config}
			if p.tag != "" {
				fields["tag"] = p.tag
			}
			list = append(list, fields)
		}
		p.mu.Unlock()
	}
	answer := map[string]any{}
	if len(list) > 0 {
		answer["processes"] = list
	}
	emulate.Reply(w, 200, answer)
}

// running finds the process of a unary call.
func running(w http.ResponseWriter, b *box, s selector) *process {
	p := b.find(s)
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if p == nil || p.end != nil {
		refuseRPC(w, 404, "not_found", "process not found")
		return nil
	}
	return p
}

// sendSignal reaches the leader, and nobody else.
func sendSignal(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		selector
		Signal string `json:"signal"`
	}
	json.NewDecoder(r.Body).Decode(&asked)
	if asked.Signal != "SIGNAL_SIGKILL" && asked.Signal != "SIGNAL_SIGTERM" {
		refuseRPC(w, 400, "invalid_argument", "invalid signal")
		return
	}
	if p := running(w, b, asked.selector); p != nil {
		kill(p.pid, asked.Signal == "SIGNAL_SIGTERM")
		emulate.Reply(w, 200, struct{}{})
	}
}

func sendInput(w http.ResponseWriter, r *http.Request, b *box) {
	var asked struct {
		selector
		Input struct {
			Stdin []byte `json:"stdin"`
		} `json:"input"`
	}
	json.NewDecoder(r.Body).Decode(&asked)
	p := running(w, b, asked.selector)
	switch {
	case p == nil:
	case p.input == nil:
		refuseRPC(w, 400, "failed_precondition", "stdin is not enabled or is closed")
	default:
		p.input.Write(asked.Input.Stdin)
		emulate.Reply(w, 200, struct{}{})
	}
}

func closeStdin(w http.ResponseWriter, r *http.Request, b *box) {
	var asked selector
	json.NewDecoder(r.Body).Decode(&asked)
	if p := running(w, b, asked); p != nil {
		if p.input != nil {
			p.input.Close()
		}
		emulate.Reply(w, 200, struct{}{})
	}
}
