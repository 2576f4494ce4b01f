package runlooptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/machine"
)

// An execution is one command.
type execution struct {
	id, key     string // key is the command_id it was started with
	box         *box
	run         *machine.Running
	out, errOut output
}

// An output is what a command has written. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	data []byte
	more chan struct{} // closed when there is more
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = append(o.data, p...)
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return len(p), nil
}

// from returns a part of what there is from offset on, and what is closed when
// there is more.
func (o *output) from(offset int) ([]byte, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	data := o.data[min(offset, len(o.data)):]
	return data[:min(len(data), 64<<10)], o.more
}

func (o *output) all() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data
}

// text is p as JSON can carry it: the service's output is text.
func text(p []byte) string { return strings.ToValidUTF8(string(p), "\ufffd") }

func (s *Server) processes(mux *http.ServeMux) {
	s.handle(mux, "execute", "POST /v1/devboxes/{id}/execute", s.inside(s.execute))
	s.handle(mux, "execute-async", "POST /v1/devboxes/{id}/execute_async", s.inside(s.executeAsync))
	s.handle(mux, "execution", "GET /v1/devboxes/{id}/executions/{eid}", s.withExecution(func(w http.ResponseWriter, r *http.Request, x *execution) {
		reply(w, s.detail(r, x))
	}))
	s.handle(mux, "execution-wait", "POST /v1/devboxes/{id}/executions/{eid}/wait_for_status", s.withExecution(s.waitExecution))
	s.handle(mux, "stdout", "GET /v1/devboxes/{id}/executions/{eid}/stream_stdout_updates", s.withExecution(func(w http.ResponseWriter, r *http.Request, x *execution) {
		s.stream(w, r, x, &x.out)
	}))
	s.handle(mux, "stderr", "GET /v1/devboxes/{id}/executions/{eid}/stream_stderr_updates", s.withExecution(func(w http.ResponseWriter, r *http.Request, x *execution) {
		s.stream(w, r, x, &x.errOut)
	}))
	s.handle(mux, "kill", "POST /v1/devboxes/{id}/executions/{eid}/kill", s.withExecution(s.kill))
}

// inside finds the running devbox of a request. f runs without locks.
func (s *Server) inside(f func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		b := s.find(r.PathValue("id"))
		status := ""
		if b != nil {
			status = b.status
			b.active = s.cfg.Now()
		}
		s.mu.Unlock()
		switch {
		case b == nil:
			refuse(w, 404, "Devbox with id "+r.PathValue("id")+" not found")
		case status != "running":
			notRunning(w, b, status)
		default:
			f(w, r, b)
		}
	}
}

func (s *Server) withExecution(f func(http.ResponseWriter, *http.Request, *execution)) http.HandlerFunc {
	return s.inside(func(w http.ResponseWriter, r *http.Request, b *box) {
		x := b.execution(r.PathValue("eid"))
		if x == nil {
			refuse(w, 404, "Execution not found")
			return
		}
		f(w, r, x)
	})
}

// shell returns the lock of the shell with that name.
func (b *box) shell(name string) *sync.Mutex {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shells[name] == nil {
		b.shells[name] = &sync.Mutex{}
	}
	return b.shells[name]
}

func (b *box) execution(id string) *execution {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.executions {
		if id != "" && (x.id == id || x.key == id) {
			return x
		}
	}
	return nil
}

// A start is a request to run a command.
type start struct {
	Command    string  `json:"command"`
	ID         string  `json:"command_id"`
	Shell      string  `json:"shell_name"`
	Optimistic float64 `json:"optimistic_timeout"`
}

// keepShell runs $2 and keeps the directory and environment for the next command
// of the same shell in the file $1.
const keepShell = `[ ! -f "$1" ] || . "$1"
eval "$2"
r=$?
{ export -p; printf 'cd "%s"\n' "$PWD"; } >"$1"
exit $r`

// begin starts a command once per key.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, b *box, key string) (x *execution, body start) {
	if !read(w, r, &body) {
		return nil, body
	}
	if strings.TrimSpace(body.Command) == "" {
		refuse(w, 400, "command must not be empty")
		return nil, body
	}
	if key == "" {
		key = body.ID
	}
	if s.Behaviour().ForgetKeys {
		key = ""
	}
	s.mu.Lock()
	id := s.number("exe_")
	s.mu.Unlock()
	args := []string{"sh", "-c", body.Command}
	if body.Shell != "" {
		turn := b.shell(body.Shell)
		turn.Lock()
		defer func() {
			if x == nil {
				turn.Unlock()
				return
			}
			go func() { <-x.run.Done(); turn.Unlock() }()
		}()
		args = []string{"sh", "-c", keepShell, "sh", b.machine.Temp() + "/.shell-" + body.Shell, body.Command}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, old := range b.executions {
		if key != "" && old.key == key {
			return old, body
		}
	}
	made := &execution{id: id, key: key, box: b}
	var err error
	if made.run, err = b.machine.Start(machine.Process{Args: args, Stdout: &made.out, Stderr: &made.errOut}); err != nil {
		refuse(w, 400, "cannot start: "+err.Error())
		return nil, body
	}
	b.executions = append(b.executions, made)
	return made, body
}

// execute waits a little for the command to end.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, b *box) {
	x, body := s.begin(w, r, b, "")
	if x == nil {
		return
	}
	hold := s.cfg.Hold
	if body.Optimistic > 0 {
		hold = min(hold, time.Duration(body.Optimistic*float64(time.Second)))
	}
	select {
	case <-x.run.Done():
	case <-time.After(hold):
	case <-s.Done():
	case <-r.Context().Done():
		return
	}
	reply(w, s.detail(r, x))
}

func (s *Server) executeAsync(w http.ResponseWriter, r *http.Request, b *box) {
	if x, _ := s.begin(w, r, b, r.Header.Get("X-Request-Id")); x != nil {
		reply(w, s.detail(r, x))
	}
}

// detail is x as the service shows it: with the last lines of its output once it
// has completed.
func (s *Server) detail(r *http.Request, x *execution) map[string]any {
	fields := map[string]any{"devbox_id": x.box.id, "execution_id": x.id, "status": "running"}
	select {
	case <-x.run.Done():
	default:
		return fields
	}
	fields["status"] = "completed"
	if exit, _ := x.run.Wait(); !s.Behaviour().NoExitStatus {
		fields["exit_status"] = exit
	}
	most, err := strconv.Atoi(r.URL.Query().Get("last_n"))
	if err != nil || most < 1 {
		most = 100
	}
	for name, o := range map[string]*output{"stdout": &x.out, "stderr": &x.errOut} {
		data := o.all()
		end := len(bytes.TrimSuffix(data, []byte("\n")))
		begin := end
		for n := 0; n < most && begin >= 0; n++ {
			begin = bytes.LastIndexByte(data[:max(begin, 0)], '\n')
		}
		fields[name], fields[name+"_truncated"] = text(data[begin+1:]), begin >= 0
	}
	return fields
}

// waitExecution holds the request until the command has ended.
func (s *Server) waitExecution(w http.ResponseWriter, r *http.Request, x *execution) {
	var body struct {
		Statuses []string `json:"statuses"`
		Timeout  float64  `json:"timeout_seconds"`
	}
	if !read(w, r, &body) {
		return
	}
	hold := s.cfg.Hold
	if body.Timeout > 0 {
		hold = min(hold, time.Duration(body.Timeout*float64(time.Second)))
	}
	limit := time.NewTimer(hold)
	defer limit.Stop()
	select {
	case <-x.run.Done():
		if x.box.execution(x.id) == nil {
			refuse(w, 404, "Execution not found")
			return
		}
		reply(w, s.detail(r, x))
	case <-limit.C:
		w.Header().Set("X-Should-Retry", "true")
		refuse(w, 408, "the execution has not reached the status")
	case <-s.Done():
	case <-r.Context().Done():
	}
}

// stream sends the output of x as server-sent events until it ends.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, x *execution, o *output) {
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	flush := http.NewResponseController(w)
	fmt.Fprint(w, ": connected\n\n")
	flush.Flush()
	for {
		ended := false
		select {
		case <-x.run.Done():
			ended = true
		default:
		}
		data, more := o.from(offset)
		// A character is never in two pieces, unless it never ends.
		if n := incomplete(data); n < len(data) {
			data = data[:len(data)-n]
		}
		lagging := s.Behaviour().LaggingStream
		if lagging && ended && len(data) < 64<<10 {
			data = nil
		}
		if len(data) > 0 {
			item := map[string]any{"output": text(data), "offset": offset + len(data)}
			if s.Behaviour().StartOffsets {
				item["offset"] = offset
			}
			line, _ := json.Marshal(item)
			fmt.Fprintf(w, "data: %s\n\n", line)
			flush.Flush()
			offset += len(data)
			if s.idleStream() {
				fmt.Fprint(w, "event: error\ndata: {\"code\":\"408\",\"message\":\"the stream is idle\"}\n\n")
				return
			}
			continue
		}
		if ended && !lagging {
			return
		}
		done := x.run.Done()
		if ended {
			done = nil
		}
		select {
		case <-more:
		case <-done:
		case <-s.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) idleStream() bool { return s.Due(func(b *Behaviour) *int { return &b.IdleStreams }) }

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

// kill ends the command; only its own process unless the group is asked for.
// What has left the group stays.
func (s *Server) kill(w http.ResponseWriter, r *http.Request, x *execution) {
	var body struct {
		Group bool `json:"kill_process_group"`
	}
	if !read(w, r, &body) {
		return
	}
	select {
	case <-x.run.Done():
	default:
		kill(x.run.PID(), body.Group)
		<-x.run.Done()
	}
	reply(w, s.detail(r, x))
}
