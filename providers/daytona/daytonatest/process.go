package daytonatest

import (
	"bufio"
	"bytes"
	"context"
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

	"github.com/coder/websocket"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/sdk/machine"
)

// A session is one persistent shell, which runs commands one after another.
type session struct {
	id    string
	dir   string // holds the output of its commands
	shell *machine.Running
	input *os.File

	mu       sync.Mutex
	commands []*command
}

// A command is one line given to a session.
type command struct {
	id   string
	line string
	exit *int
	done chan struct{}
	base string // its files are base.o, base.e and base.i
}

func (s *Server) toolbox(mux *http.ServeMux) {
	in := func(op, method, path string, f func(http.ResponseWriter, *http.Request, *box)) {
		s.handle(mux, op, method+" /toolbox/{id}/"+path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			b := s.find(r.PathValue("id"))
			state := ""
			if b != nil {
				state = b.state
			}
			s.mu.Unlock()
			switch {
			case b == nil:
				refuse(w, r, 404, "NOT_FOUND", "Sandbox not found")
			case state != "started":
				refuse(w, r, 400, "BAD_REQUEST", "no IP address found. Is the Sandbox started?")
			default:
				f(w, r, b)
			}
		})
	}
	in("work-dir", "GET", "work-dir", func(w http.ResponseWriter, r *http.Request, b *box) {
		emulate.Reply(w, 200, map[string]string{"dir": b.machine.Dir()})
	})
	in("user-home-dir", "GET", "user-home-dir", func(w http.ResponseWriter, r *http.Request, b *box) {
		emulate.Reply(w, 200, map[string]string{"dir": b.machine.Dir()})
	})
	in("version", "GET", "version", func(w http.ResponseWriter, r *http.Request, b *box) {
		emulate.Reply(w, 200, map[string]string{"version": "v0.190.0"})
	})
	in("execute", "POST", "process/execute", s.execute)
	in("session-create", "POST", "process/session", createSession)
	in("session-list", "GET", "process/session", func(w http.ResponseWriter, r *http.Request, b *box) {
		b.mu.Lock()
		defer b.mu.Unlock()
		all := []any{}
		for _, x := range b.sessions {
			all = append(all, x.show())
		}
		emulate.Reply(w, 200, all)
	})
	in("session-get", "GET", "process/session/{sid}", withSession(func(w http.ResponseWriter, r *http.Request, b *box, x *session) {
		emulate.Reply(w, 200, x.show())
	}))
	in("session-delete", "DELETE", "process/session/{sid}", withSession(func(w http.ResponseWriter, r *http.Request, b *box, x *session) {
		b.mu.Lock()
		delete(b.sessions, x.id)
		b.mu.Unlock()
		x.shell.Kill(5 * time.Second)
		os.RemoveAll(x.dir)
		w.WriteHeader(204)
	}))
	in("session-exec", "POST", "process/session/{sid}/exec", withSession(execInSession))
	in("command", "GET", "process/session/{sid}/command/{cid}", withCommand(func(w http.ResponseWriter, r *http.Request, x *session, c *command) {
		emulate.Reply(w, 200, x.showCommand(c))
	}))
	in("logs", "GET", "process/session/{sid}/command/{cid}/logs", withCommand(logs))
	in("input", "POST", "process/session/{sid}/command/{cid}/input", withCommand(giveInput))
	s.fileRoutes(in)
}

// execute runs one command and answers with its merged output. The command is
// the standard input of a shell, so what reads standard input eats the rest.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Envs    map[string]string `json:"envs"`
		Timeout uint32            `json:"timeout"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || strings.TrimSpace(body.Command) == "" {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "command is required")
		return
	}
	var out bytes.Buffer
	run, err := b.machine.Start(machine.Process{
		Args: []string{"sh"}, Dir: body.Cwd, Env: environ(body.Envs),
		Stdin: strings.NewReader(body.Command + "\n"), Stdout: &out, Stderr: &out,
	})
	if err != nil {
		emulate.Reply(w, 200, map[string]any{"exitCode": -1, "result": err.Error()})
		return
	}
	var limit <-chan time.Time
	if body.Timeout > 0 {
		t := time.NewTimer(time.Duration(body.Timeout) * time.Second)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-run.Done():
	case <-limit:
		run.Kill(0)
		refuse(w, r, 408, "REQUEST_TIMEOUT", "command execution timeout")
		return
	}
	exit, _ := run.Wait()
	if exit > 128 {
		exit = -1
	}
	answer := map[string]any{"exitCode": exit, "result": strings.ToValidUTF8(out.String(), "\ufffd")}
	if s.Behaviour().NoExitStatus {
		delete(answer, "exitCode")
	}
	emulate.Reply(w, 200, answer)
}

func environ(env map[string]string) []string {
	var list []string
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return list
}

func createSession(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		ID string `json:"sessionId"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.ID == "" {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "sessionId is required")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[body.ID] != nil {
		refuse(w, r, 409, "CONFLICT", "session already exists")
		return
	}
	x, err := b.open(body.ID)
	if err != nil {
		refuse(w, r, 500, "INTERNAL_SERVER_ERROR", err.Error())
		return
	}
	b.sessions[body.ID] = x
	emulate.Reply(w, 201, nil)
}

// open starts the shell of a session. It reads commands from a pipe and reports
// each status as a line on its own standard output.
func (b *box) open(id string) (*session, error) {
	dir, err := os.MkdirTemp(b.machine.Root(), "session-")
	if err != nil {
		return nil, err
	}
	if err := b.machine.Own(dir); err != nil {
		return nil, err
	}
	in, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	x := &session{id: id, dir: dir, input: input}
	reports, w := io.Pipe()
	x.shell, err = b.machine.Start(machine.Process{Args: []string{"sh"}, Stdin: in, Stdout: w})
	if err != nil {
		input.Close()
		return nil, err
	}
	go func() {
		<-x.shell.Done()
		w.Close()
		input.Close()
	}()
	go func() {
		lines := bufio.NewScanner(reports)
		for lines.Scan() {
			id, status, _ := strings.Cut(lines.Text(), " ")
			exit, err := strconv.Atoi(status)
			if c := x.command(id); c != nil && err == nil {
				x.mu.Lock()
				c.exit = &exit
				x.mu.Unlock()
				close(c.done)
			}
		}
	}()
	return x, nil
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

func (x *session) show() any {
	x.mu.Lock()
	commands := append([]*command(nil), x.commands...)
	x.mu.Unlock()
	list := []any{}
	for _, c := range commands {
		list = append(list, x.showCommand(c))
	}
	return map[string]any{"sessionId": x.id, "commands": list}
}

func (x *session) showCommand(c *command) any {
	x.mu.Lock()
	defer x.mu.Unlock()
	fields := map[string]any{"id": c.id, "command": c.line}
	if c.exit != nil {
		fields["exitCode"] = *c.exit
	}
	return fields
}

func withSession(f func(http.ResponseWriter, *http.Request, *box, *session)) func(http.ResponseWriter, *http.Request, *box) {
	return func(w http.ResponseWriter, r *http.Request, b *box) {
		b.mu.Lock()
		x := b.sessions[r.PathValue("sid")]
		b.mu.Unlock()
		if x == nil {
			refuse(w, r, 404, "NOT_FOUND", "session not found")
			return
		}
		f(w, r, b, x)
	}
}

func withCommand(f func(http.ResponseWriter, *http.Request, *session, *command)) func(http.ResponseWriter, *http.Request, *box) {
	return withSession(func(w http.ResponseWriter, r *http.Request, b *box, x *session) {
		c := x.command(r.PathValue("cid"))
		if c == nil {
			refuse(w, r, 404, "PROCESS_NOT_FOUND", "command not found")
			return
		}
		f(w, r, x, c)
	})
}

func execInSession(w http.ResponseWriter, r *http.Request, b *box, x *session) {
	var body struct {
		Command  string `json:"command"`
		RunAsync bool   `json:"runAsync"`
		Async    bool   `json:"async"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || strings.TrimSpace(body.Command) == "" {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "command is required")
		return
	}
	b.mu.Lock()
	b.commands++
	id := fmt.Sprintf("cmd-%d", b.commands)
	b.mu.Unlock()
	c := &command{id: id, line: body.Command, done: make(chan struct{}), base: filepath.Join(x.dir, id)}
	if pipe, err := b.machine.Start(machine.Process{Args: []string{"mkfifo", c.base + ".i"}}); err == nil {
		pipe.Wait()
	}
	x.mu.Lock()
	x.commands = append(x.commands, c)
	// The pipe is open for reading and writing: its end never comes.
	_, err := fmt.Fprintf(x.input, "{\n%[2]s\n} <>'%[1]s.i' >'%[1]s.o' 2>'%[1]s.e'; echo \"%[3]s $?\"\n", c.base, body.Command, id)
	x.mu.Unlock()
	if err != nil {
		refuse(w, r, 500, "INTERNAL_SERVER_ERROR", "failed to write command: broken pipe")
		return
	}
	if body.RunAsync || body.Async {
		emulate.Reply(w, 202, map[string]any{"cmdId": id})
		return
	}
	select {
	case <-c.done:
	case <-r.Context().Done():
		return
	}
	answer := output(r, c)
	answer["cmdId"] = id
	x.mu.Lock()
	answer["exitCode"] = *c.exit
	x.mu.Unlock()
	emulate.Reply(w, 200, answer)
}

// output is what a command has written so far; apart only for clients that can
// read it so.
func output(r *http.Request, c *command) map[string]any {
	stdout, _ := os.ReadFile(c.base + ".o")
	stderr, _ := os.ReadFile(c.base + ".e")
	text := func(b []byte) string { return strings.ToValidUTF8(strings.ReplaceAll(string(b), "\x00", ""), "\ufffd") }
	answer := map[string]any{"output": text(stdout) + text(stderr)}
	if split(r) {
		answer["stdout"], answer["stderr"] = text(stdout), text(stderr)
	}
	return answer
}

func giveInput(w http.ResponseWriter, r *http.Request, x *session, c *command) {
	var body struct {
		Data string `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, r, 400, "INVALID_REQUEST_BODY", "data is required")
		return
	}
	select {
	case <-c.done:
		refuse(w, r, 410, "COMMAND_ALREADY_COMPLETED", "command has already completed")
		return
	default:
	}
	f, err := os.OpenFile(c.base+".i", os.O_RDWR, 0)
	if err != nil {
		refuse(w, r, 400, "BAD_REQUEST", "command takes no input")
		return
	}
	io.WriteString(f, body.Data+"\n")
	go func() { // what is in the pipe is lost if nobody has it open, and the command may still have to
		<-c.done
		f.Close()
	}()
	w.WriteHeader(204)
}

// logs answers with the output so far, or streams it over a WebSocket: every
// line in frames of at most 1 KiB, behind a marker of its stream.
func logs(w http.ResponseWriter, r *http.Request, x *session, c *command) {
	if r.URL.Query().Get("follow") != "true" {
		emulate.Reply(w, 200, output(r, c))
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx := conn.CloseRead(context.WithoutCancel(r.Context()))
	have := map[string]int{}
	pump := func(last bool) error {
		for _, kind := range []string{"o", "e"} {
			data, _ := os.ReadFile(c.base + "." + kind)
			data = data[min(have[kind], len(data)):]
			end := bytes.LastIndexByte(data, '\n') + 1
			if last {
				end = len(data)
			}
			have[kind] += end
			for line := range bytes.Lines(data[:end]) {
				frame := append([]byte{1, 1, 1}, bytes.ReplaceAll(line, []byte{0}, nil)...)
				if kind == "e" {
					frame[0], frame[1], frame[2] = 2, 2, 2
				}
				if frame[len(frame)-1] != '\n' {
					frame = append(frame, '\n')
				}
				for len(frame) > 0 {
					n := min(len(frame), 1024)
					if err := conn.Write(ctx, websocket.MessageBinary, frame[:n]); err != nil {
						return err
					}
					frame = frame[n:]
				}
			}
		}
		return nil
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if pump(false) != nil {
				return
			}
			continue
		case <-c.done:
		case <-x.shell.Done():
		case <-ctx.Done():
			return
		}
		if pump(true) == nil {
			conn.Close(websocket.StatusNormalClosure, "")
		}
		return
	}
}
