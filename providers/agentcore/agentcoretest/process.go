package agentcoretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/talkops-ai/talkops/sdk/machine"
)

const (
	lineMost   = 128 << 10 // a command longer than this hangs on the terminal
	outputMost = 64 << 10  // more output of a command is cut off
)

// A result is the event that ends a tool's work.
type result struct {
	Content []map[string]any `json:"content"`
	Data    map[string]any   `json:"structuredContent,omitempty"`
	Error   bool             `json:"isError"`
}

// A tool does its work for a session. It is called without mu.
type tool func(s *Server, r *http.Request, b *box, arguments json.RawMessage) result

// A task is a command that runs apart from the request that started it.
type task struct {
	id  string
	run *machine.Running
	out *output

	mu      sync.Mutex
	stopped bool
}

// An output is what a command writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := outputMost - o.buf.Len(); room > 0 {
		o.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// text is what is shown of the output: on a terminal, lines end otherwise.
func (o *output) text(terminal bool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := strings.ToValidUTF8(o.buf.String(), "\ufffd")
	if terminal {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func failure(format string, args ...any) result {
	return result{Content: []map[string]any{{"type": "text", "text": fmt.Sprintf(format, args...)}}, Error: true}
}

// invoke answers with the result of a tool as a stream of events.
func (s *Server) invoke(w http.ResponseWriter, r *http.Request, name string, arguments json.RawMessage, f tool) {
	began := time.Now()
	id := r.Header.Get("X-Amzn-Code-Interpreter-Session-Id")
	s.mu.Lock()
	never, twist := s.Behaviour().NeverReady, s.Behaviour().Twist[name]
	b := s.session(w, r, id)
	if b != nil && b.status != ready {
		refuse(w, 404, "ResourceNotFoundException", "Session "+id+" was not found")
		b = nil
	}
	s.mu.Unlock()
	switch {
	case b == nil:
		return
	case never:
		refuse(w, 500, "InternalServerException", "An internal error occurred")
		return
	}
	res := f(s, r, b, arguments)
	if r.Context().Err() != nil {
		return
	}
	time.Sleep(s.cfg.Delay - time.Since(began))
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	w.Header().Set("X-Amzn-Code-Interpreter-Session-Id", id)
	w.WriteHeader(200)
	for _, m := range twisted(twist, res) {
		w.Write(m)
	}
}

// twisted returns the messages of an answer.
func twisted(twist string, res result) [][]byte {
	whole := message("event", "result", res)
	switch twist {
	case TwistEmpty:
		return nil
	case TwistTruncated:
		return [][]byte{whole[:len(whole)-7]}
	case TwistCorrupt:
		whole[len(whole)-1] ^= 1
	case TwistThrottled:
		return [][]byte{
			message("event", "result", result{Content: []map[string]any{}}),
			message("exception", "throttlingException", map[string]any{"message": "Rate exceeded"}),
		}
	case TwistUnknown:
		return [][]byte{message("event", "heartbeat", map[string]any{"x": 1}), whole}
	case TwistSeveral:
		if stdout, ok := res.Data["stdout"].(string); ok {
			first, second := res, res
			first.Data, second.Data = map[string]any{"stdout": stdout[:len(stdout)/2]}, map[string]any{}
			for k, v := range res.Data {
				second.Data[k] = v
			}
			second.Data["stdout"] = stdout[len(stdout)/2:]
			return [][]byte{message("event", "result", first), message("event", "result", second)}
		}
	case TwistNoExit:
		return [][]byte{message("event", "result", result{Content: []map[string]any{}})}
	}
	return [][]byte{whole}
}

// message encodes one event or exception.
func message(kind, name string, payload any) []byte {
	data, _ := json.Marshal(payload)
	var m eventstream.Message
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(name))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	m.Payload = data
	var buf bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&buf, m); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// spawn starts a command line on a terminal, whose input never ends, or without.
func (s *Server) spawn(b *box, command string, stdout, stderr *output) (*machine.Running, error) {
	p := machine.Process{Args: []string{"sh", "-c", command}, Dir: b.dir, Env: []string{"PWD=" + b.dir}, Stdout: stdout, Stderr: stderr}
	if s.cfg.Clean {
		return b.machine.Start(p)
	}
	in, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p.Stdin, p.Stderr = in, stdout
	run, err := b.machine.Start(p)
	if err != nil {
		input.Close()
		return nil, err
	}
	go func() {
		<-run.Done()
		input.Close()
	}()
	return run, nil
}

// command reads the command line of the arguments. One that is too long for the
// terminal is never answered.
func command(s *Server, r *http.Request, arguments json.RawMessage) (string, bool) {
	var asked struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(arguments, &asked) != nil || asked.Command == "" {
		return "", false
	}
	if len(asked.Command) > lineMost {
		select {
		case <-r.Context().Done():
		case <-s.Done():
		}
		panic(http.ErrAbortHandler)
	}
	return asked.Command, true
}

// executeCommand runs a command to its end. What it leaves in the background is
// ended. The command goes on when the client has gone.
func executeCommand(s *Server, r *http.Request, b *box, arguments json.RawMessage) result {
	line, ok := command(s, r, arguments)
	if !ok {
		return failure("command is required")
	}
	began := time.Now()
	stdout, stderr := &output{}, &output{}
	run, err := s.spawn(b, line, stdout, stderr)
	if err != nil {
		return failure("%v", err)
	}
	exit, _ := run.Wait()
	run.Kill(0)
	res := s.outcome(exit, stdout, stderr)
	res.Data["executionTime"] = time.Since(began).Seconds()
	return res
}

// outcome is the result of a command that has ended.
func (s *Server) outcome(exit int, stdout, stderr *output) result {
	out, errOut := stdout.text(!s.cfg.Clean), stderr.text(false)
	if !s.cfg.Clean && exit != 0 {
		out, errOut = "", out
	}
	text := out
	if text == "" {
		text = errOut
	}
	return result{
		Content: []map[string]any{{"type": "text", "text": text}},
		Data:    map[string]any{"stdout": out, "stderr": errOut, "exitCode": exit},
		Error:   exit != 0,
	}
}

func startCommand(s *Server, r *http.Request, b *box, arguments json.RawMessage) result {
	line, ok := command(s, r, arguments)
	if !ok {
		return failure("command is required")
	}
	t := &task{out: &output{}}
	run, err := s.spawn(b, line, t.out, t.out)
	if err != nil {
		return failure("%v", err)
	}
	t.run = run
	b.mu.Lock()
	t.id = fmt.Sprintf("task-%04d", len(b.tasks)+1)
	b.tasks = append(b.tasks, t)
	b.mu.Unlock()
	return result{
		Content: []map[string]any{{"type": "text", "text": "Command execution started. Task ID: " + t.id}},
		Data:    map[string]any{"taskId": t.id, "taskStatus": "submitted"},
	}
}

// find returns the task of the arguments.
func (b *box) find(arguments json.RawMessage) (*task, string) {
	var asked struct {
		Task string `json:"taskId"`
	}
	json.Unmarshal(arguments, &asked)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tasks {
		if t.id == asked.Task {
			return t, asked.Task
		}
	}
	return nil, asked.Task
}

func getTask(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	t, id := b.find(arguments)
	if t == nil {
		return failure("Task %s not found", id)
	}
	return s.state(t)
}

// state is the result of a task so far.
func (s *Server) state(t *task) result {
	t.mu.Lock()
	stopped := t.stopped
	t.mu.Unlock()
	status := "working"
	res := result{Content: []map[string]any{}, Data: map[string]any{}}
	select {
	case <-t.run.Done():
		exit, _ := t.run.Wait()
		res = s.outcome(exit, t.out, &output{})
		status = "completed"
		if exit != 0 {
			status = "failed"
		}
	default:
	}
	if stopped {
		status = "canceled"
	}
	res.Error = false
	res.Data["taskId"], res.Data["taskStatus"] = t.id, status
	return res
}

func stopTask(s *Server, _ *http.Request, b *box, arguments json.RawMessage) result {
	t, id := b.find(arguments)
	if t == nil {
		return failure("Task %s not found", id)
	}
	select {
	case <-t.run.Done():
	default:
		t.mu.Lock()
		t.stopped = true
		t.mu.Unlock()
		t.run.Kill(0)
	}
	return s.state(t)
}
