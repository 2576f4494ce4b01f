package langsmithtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A command is one process that clients follow over WebSockets. It outlives them.
type command struct {
	id     string
	run    *machine.Running
	box    *box
	input  *os.File
	shut   sync.Once // of input
	stdout *ring
	stderr *ring
	done   chan struct{} // the process has ended and its output is closed
	lost   chan struct{} // the computer has ended under it
	gone   sync.Once

	mu       sync.Mutex
	viewers  int
	left     time.Time // when the last viewer left
	ended    time.Time
	exit     int
	timedOut bool
}

// A ring keeps the last bytes of a stream.
type ring struct {
	size int

	mu    sync.Mutex
	first int64 // the offset of buf[0]
	buf   []byte
	ended bool
	more  chan struct{} // closed when there is more
}

func newRing(size int) *ring { return &ring{size: size, more: make(chan struct{})} }

// fill copies f until nobody can write to it any more.
func (r *ring) fill(f *os.File) {
	defer f.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		r.mu.Lock()
		r.buf = append(r.buf, buf[:n]...)
		if over := len(r.buf) - r.size; over > 0 {
			r.buf = append([]byte(nil), r.buf[over:]...)
			r.first += int64(over)
		}
		r.ended = err != nil
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// next returns what follows offset, or where the ring begins now. No character
// is split. It also tells whether all has been returned, and what to wait for.
func (r *ring) next(offset int64) (at int64, data []byte, end bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at = max(offset, r.first)
	data = r.buf[min(at-r.first, int64(len(r.buf))):]
	if len(data) > 32<<10 {
		data = data[:32<<10]
	}
	if whole := at+int64(len(data)) == r.first+int64(len(r.buf)); !whole || !r.ended {
		for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
			if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					data = data[:len(data)-n]
				}
				break
			}
		}
	}
	return at, append([]byte(nil), data...), r.ended && at+int64(len(data)) == r.first+int64(len(r.buf)), r.more
}

// A frame is one message from the client.
type frame struct {
	Type         string            `json:"type"`
	Command      string            `json:"command"`
	ID           string            `json:"command_id"`
	Timeout      *float64          `json:"timeout_seconds"`
	Shell        string            `json:"shell"`
	Idle         *float64          `json:"idle_timeout_seconds"`
	KillOnLeave  bool              `json:"kill_on_disconnect"`
	TTL          *float64          `json:"ttl_seconds"`
	Env          map[string]string `json:"env"`
	Cwd          string            `json:"cwd"`
	Config       *runConfig        `json:"run_config"`
	PTY          bool              `json:"pty"`
	CloseStdin   bool              `json:"close_stdin"`
	StdoutOffset int64             `json:"stdout_offset"`
	StderrOffset int64             `json:"stderr_offset"`
	Data         string            `json:"data"`
}

type runConfig struct {
	User string            `json:"user"`
	Dir  string            `json:"work_dir"`
	Env  map[string]string `json:"env_vars"`
}

// place gives the directory and environment, which are asked for in one of two ways.
func (f *frame) place() (dir string, env []string, err error) {
	vars := f.Env
	dir = f.Cwd
	if f.Config != nil {
		if f.Env != nil || f.Cwd != "" {
			return "", nil, fmt.Errorf("run_config cannot be combined with env or cwd")
		}
		dir, vars = f.Config.Dir, f.Config.Env
	}
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	return dir, env, nil
}

func seconds(n *float64, unset float64) time.Duration {
	if n != nil {
		unset = *n
	}
	return time.Duration(unset * float64(time.Second))
}

func (s *Server) dataplane(mux *http.ServeMux) {
	in := func(op, method, path string, f func(http.ResponseWriter, *http.Request, *box)) {
		mux.Handle(method+" /dp/{id}/"+path, s.Handle(op, s.admit, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			b := s.find(r.PathValue("id"))
			status, waking := "", false
			if b != nil {
				// A request wakes a stopped sandbox.
				if b.status == "stopped" {
					s.provision(b)
					b.waking = b.status == "provisioning"
					status, waking = "provisioning", true
				} else {
					status, waking = b.status, b.waking
				}
				b.used = s.cfg.Now()
			}
			s.mu.Unlock()
			switch {
			case b == nil:
				refuse(w, 404, "NotFound", "Sandbox not found")
			case waking:
				refuse(w, 503, "ServiceUnavailable", "Sandbox is waking up")
			case status != "ready":
				refuse(w, 400, "NotReady", "Sandbox is "+status)
			default:
				f(w, r, b)
			}
		}))
	}
	in("ws", "GET", "execute/ws", s.follow)
	in("execute", "POST", "execute", s.execute)
	s.fileRoutes(in)
}

// execute runs one command to its end and answers with its output.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		frame
		Timeout *float64 `json:"timeout"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || strings.TrimSpace(body.Command) == "" {
		invalid(w, "command", "command is required")
		return
	}
	body.frame.Timeout, body.CloseStdin = body.Timeout, true
	body.ID = uuid()
	c, err := s.begin(b, &body.frame, 64<<20)
	if err != nil {
		refuse(w, 400, "CommandError", err.Error())
		return
	}
	defer b.forget(c)
	var stdout, stderr bytes.Buffer
	ctx := r.Context()
	for _, x := range []struct {
		ring *ring
		to   *bytes.Buffer
	}{{c.stdout, &stdout}, {c.stderr, &stderr}} {
		for end := false; !end; {
			at, data, last, more := x.ring.next(int64(x.to.Len()))
			if at == int64(x.to.Len()) {
				x.to.Write(data)
			}
			if end = last; end || len(data) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			case <-c.lost:
				refuse(w, 502, "ConnectionError", "Connection to the sandbox failed")
				return
			}
		}
	}
	<-c.done
	exit, timedOut := c.outcome()
	if timedOut {
		refuse(w, 408, "CommandTimeout", "Command timed out")
		return
	}
	answer := map[string]any{"stdout": text(stdout.Bytes()), "stderr": text(stderr.Bytes()), "exit_code": exit}
	if s.Behaviour().NoExitStatus {
		delete(answer, "exit_code")
	}
	emulate.Reply(w, 200, answer)
}

func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }

func (b *box) forget(c *command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.commands[c.id] == c {
		delete(b.commands, c.id)
	}
}

// begin starts a command that keeps so many bytes of each stream, or finds the one
// that has its id.
func (s *Server) begin(b *box, f *frame, keep int) (*command, error) {
	dir, env, err := f.place()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.commands[f.ID]; c != nil {
		return c, nil
	}
	shell := f.Shell
	if shell == "" {
		shell = "/bin/bash"
	}
	in, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c := &command{
		id: f.ID, box: b, input: input, stdout: newRing(keep), stderr: newRing(keep),
		done: make(chan struct{}), lost: make(chan struct{}), left: s.cfg.Now(),
	}
	if f.CloseStdin {
		c.closeInput()
	}
	var copies sync.WaitGroup
	var outputs []*os.File
	for _, r := range []*ring{c.stdout, c.stderr} {
		pr, pw, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer pw.Close()
		outputs = append(outputs, pw)
		copies.Go(func() { r.fill(pr) })
	}
	if f.PTY {
		outputs[1] = outputs[0]
	}
	c.run, err = b.machine.Start(machine.Process{
		Args: []string{shell, "-c", f.Command}, Dir: dir, Env: env, Stdin: in, Stdout: outputs[0], Stderr: outputs[1],
	})
	if err != nil {
		c.closeInput()
		return nil, err
	}
	b.commands[c.id] = c
	go func() {
		// The end is told only when nobody holds the output open any more.
		exit, _ := c.run.Wait()
		copies.Wait()
		c.closeInput()
		c.mu.Lock()
		c.exit, c.ended = exit, s.cfg.Now()
		c.mu.Unlock()
		close(c.done)
	}()
	go s.guard(c, seconds(f.Timeout, 60), seconds(f.Idle, 300), f.KillOnLeave)
	return c, nil
}

// guard kills c when its time is up or nobody has followed it for long.
func (s *Server) guard(c *command, limit, idle time.Duration, killOnLeave bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var seen bool
	for begin := s.cfg.Now(); ; {
		select {
		case <-tick.C:
		case <-c.done:
			return
		case <-c.lost:
			return
		}
		now := s.cfg.Now()
		c.mu.Lock()
		seen = seen || c.viewers > 0
		abandoned := c.viewers == 0 && idle >= 0 && now.Sub(c.left) >= idle || killOnLeave && seen && c.viewers == 0
		c.timedOut = c.timedOut || limit > 0 && now.Sub(begin) >= limit
		kill := abandoned || c.timedOut
		c.mu.Unlock()
		if kill {
			c.kill()
		}
	}
}

// kill ends the process group of c.
func (c *command) kill() {
	run, err := c.box.machine.Start(machine.Process{Args: []string{"sh", "-c", fmt.Sprintf("kill -KILL -%d", c.run.PID())}})
	if err == nil {
		run.Wait()
	}
}

// lose ends c as the end of its computer does.
func (c *command) lose() {
	c.gone.Do(func() { close(c.lost) })
	c.kill()
	c.run.Kill(0)
}

// outcome tells how c ended.
func (c *command) outcome() (exit int, timedOut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit, c.timedOut
}

func (c *command) closeInput() { c.shut.Do(func() { c.input.Close() }) }

func (c *command) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.viewers > 0
}

// A viewer is one WebSocket that follows a command.
type viewer struct {
	conn *websocket.Conn
	ctx  context.Context
	left int64 // bytes of output until it is cut; negative is any number
}

func (v *viewer) send(fields map[string]any) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return v.conn.Write(v.ctx, websocket.MessageText, data)
}

func (v *viewer) fail(kind, message string) {
	v.send(map[string]any{"type": "error", "error_type": kind, "error": message})
	v.conn.Close(websocket.StatusNormalClosure, "")
}

// follow serves one WebSocket.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, b *box) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	v := &viewer{conn: conn, ctx: ctx, left: -1}
	_, data, err := conn.Read(ctx)
	var f frame
	if err != nil || json.Unmarshal(data, &f) != nil {
		v.fail("CommandError", "the first frame is no JSON object")
		return
	}
	if f.Type != "execute" && f.Type != "reconnect" {
		v.fail("CommandError", "unexpected frame "+f.Type)
		return
	}
	fault, end := s.Begin(Request{Op: "ws-" + f.Type, Method: "WS", Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: string(data)})
	defer end(200)
	var c *command
	attach := func() bool {
		b.mu.Lock()
		c = b.commands[f.ID]
		b.mu.Unlock()
		switch {
		case f.Type == "execute" && strings.TrimSpace(f.Command) == "":
			v.fail("CommandError", "command is required")
		case f.Type == "execute":
			if f.ID == "" {
				f.ID = uuid()
			}
			f.StdoutOffset, f.StderrOffset = 0, 0
			if c, err = s.begin(b, &f, s.cfg.Ring); err != nil {
				v.fail("CommandError", err.Error())
				c = nil
			}
		case c == nil:
			v.fail("CommandNotFound", "Command not found: "+f.ID)
		case s.expired(c, seconds(f.TTL, 600)):
			v.fail("SessionExpired", "Session expired: "+f.ID)
			c = nil
		}
		return c != nil
	}
	if fault != nil {
		switch {
		case fault.Status >= 1000:
			if fault.Late && !attach() {
				return
			}
			if fault.Cut == 0 {
				conn.Close(websocket.StatusCode(fault.Status), "")
				return
			}
			v.left = fault.Cut
		case fault.Status > 0:
			if fault.Body != "" {
				conn.Write(ctx, websocket.MessageText, []byte(fault.Body))
			}
			return
		case fault.Hang:
			s.idle(v)
			return
		case fault.Late:
			attach()
			return
		case fault.Hold:
			if attach() {
				s.idle(v)
			}
			return
		default:
			v.left = max(fault.Cut, 0)
		}
	}
	if c == nil && !attach() {
		return
	}
	c.mu.Lock()
	c.viewers++
	c.mu.Unlock()
	go func() {
		defer cancel()
		s.listen(v, c)
	}()
	last := s.stream(v, c, f.StdoutOffset, f.StderrOffset)
	c.mu.Lock()
	c.viewers--
	c.left = s.cfg.Now()
	c.mu.Unlock()
	switch {
	case last != nil:
		v.send(last)
		conn.Close(websocket.StatusNormalClosure, "")
	case v.left == 0 && fault.Status >= 1000:
		conn.Close(websocket.StatusCode(fault.Status), "")
	}
}

func (s *Server) expired(c *command, ttl time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ttl >= 0 && !c.ended.IsZero() && s.cfg.Now().Sub(c.ended) >= ttl
}

// idle waits until the client or the server has gone.
func (s *Server) idle(v *viewer) {
	ctx := v.conn.CloseRead(v.ctx)
	select {
	case <-ctx.Done():
	case <-s.Done():
	}
}

// listen does what the client says until it leaves.
func (s *Server) listen(v *viewer, c *command) {
	for {
		_, data, err := v.conn.Read(v.ctx)
		if err != nil {
			return
		}
		var f frame
		if json.Unmarshal(data, &f) != nil {
			continue
		}
		switch f.Type {
		case "kill":
			fault, end := s.Begin(Request{Op: "ws-kill", Method: "WS", Path: c.id, Body: string(data)})
			if fault == nil || fault.Late || fault.Hold {
				c.kill()
			}
			end(200)
			if fault != nil {
				return
			}
		case "input":
			c.input.WriteString(f.Data)
		case "close_stdin":
			c.closeInput()
		}
	}
}

// stream tells the client of c and returns the frame that is its end, or nil if
// the client has gone, the command is lost or a fault cuts it.
func (s *Server) stream(v *viewer, c *command, stdout, stderr int64) map[string]any {
	if v.send(map[string]any{"type": "started", "command_id": c.id, "pid": c.run.PID()}) != nil || v.left == 0 {
		return nil
	}
	for {
		atOut, out, endOut, moreOut := c.stdout.next(stdout)
		atErr, err, endErr, moreErr := c.stderr.next(stderr)
		for _, x := range []struct {
			name string
			at   int64
			data []byte
		}{{"stdout", atOut, out}, {"stderr", atErr, err}} {
			if v.left >= 0 && int64(len(x.data)) >= v.left {
				x.data = x.data[:v.left]
			}
			if len(x.data) > 0 && v.send(map[string]any{"type": x.name, "data": string(x.data), "offset": x.at}) != nil {
				return nil
			}
			if v.left >= 0 {
				if v.left -= int64(len(x.data)); v.left == 0 {
					return nil
				}
			}
		}
		stdout, stderr = atOut+int64(len(out)), atErr+int64(len(err))
		if endOut && endErr {
			break
		}
		if len(out)+len(err) > 0 {
			continue
		}
		select {
		case <-moreOut:
		case <-moreErr:
		case <-v.ctx.Done():
			return nil
		case <-c.lost:
			return nil
		case <-s.Done():
			return nil
		}
	}
	select {
	case <-c.done:
	case <-v.ctx.Done():
		return nil
	}
	select {
	case <-c.lost:
		return nil
	default:
	}
	if v.left >= 0 {
		v.left = 0
		return nil
	}
	exit, timedOut := c.outcome()
	if timedOut {
		return map[string]any{"type": "error", "error_type": "CommandTimeout", "error": "Command timed out"}
	}
	last := map[string]any{"type": "exit", "exit_code": exit}
	if s.Behaviour().NoExitStatus {
		delete(last, "exit_code")
	}
	return last
}
