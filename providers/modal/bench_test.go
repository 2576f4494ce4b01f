//go:build unix

package modal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/talkops-ai/talkops/providers/internal/emulate"
	"github.com/talkops-ai/talkops/providers/modal"
	"github.com/talkops-ai/talkops/providers/modal/internal/wire"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

func BenchmarkCalls(b *testing.B) {
	var p plain
	defer p.close()
	emulate.Bench(b, emulate.Subject{Provider: modal.Provider{}, Start: start}, emulate.Plain{
		Exec: func(ctx context.Context, s emulate.Service, info sandbox.Info, command string) error {
			return p.exec(ctx, s, info, nil, io.Discard, "/bin/sh", "-c", command)
		},
		// The ways of Modal's own client.
		Upload: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, r io.Reader) error {
			return p.exec(ctx, s, info, r, io.Discard, tools, fmt.Sprintf(`{"WriteFile":{"path":%q}}`, name))
		},
		Download: func(ctx context.Context, s emulate.Service, info sandbox.Info, name string, w io.Writer) error {
			return p.exec(ctx, s, info, nil, w, tools, fmt.Sprintf(`{"ReadFile":{"path":%q}}`, name))
		},
	})
}

const tools = "/__modal/.bin/modal-sandbox-fs-tools"

// plain speaks to the router without care.
type plain struct {
	once   sync.Once
	conn   *grpc.ClientConn
	router wire.TaskCommandRouterClient
	task   string
	ctx    context.Context
	err    error
}

func (p *plain) close() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// reach takes the router's token from the log of the emulator.
func (p *plain) reach(s emulate.Service) {
	p.conn, p.err = grpc.NewClient(strings.TrimPrefix(s.Settings()["server_url"], "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64<<20), grpc.WithInitialConnWindowSize(64<<20))
	if p.err != nil {
		return
	}
	p.router = wire.NewTaskCommandRouterClient(p.conn)
	r := s.Requests("TaskExecStart")[0]
	var asked struct {
		Task string `json:"taskId"`
	}
	p.err = json.NewDecoder(bytes.NewReader([]byte(r.Body))).Decode(&asked)
	p.task = asked.Task
	p.ctx = metadata.AppendToOutgoingContext(context.Background(), "authorization", r.Header.Get("Authorization"))
}

func (p *plain) exec(_ context.Context, s emulate.Service, _ sandbox.Info, in io.Reader, out io.Writer, args ...string) error {
	p.once.Do(func() { p.reach(s) })
	if p.err != nil {
		return p.err
	}
	id := uuid.NewString()
	_, err := p.router.TaskExecStart(p.ctx, &wire.TaskExecStartRequest{
		TaskId: p.task, ExecId: id, CommandArgs: args, StdoutConfig: wire.TaskExecStdoutConfig_TASK_EXEC_STDOUT_CONFIG_PIPE,
	})
	if err != nil {
		return err
	}
	if in != nil {
		w, err := p.router.TaskExecStdinWriteStream(p.ctx)
		if err != nil {
			return err
		}
		w.Send(&wire.TaskExecStdinWriteStreamRequest{Payload: &wire.TaskExecStdinWriteStreamRequest_Start{Start: &wire.TaskExecStdinWriteStreamStart{TaskId: p.task, ExecId: id}}})
		buf := make([]byte, 256<<10)
		for {
			n, err := in.Read(buf)
			w.Send(&wire.TaskExecStdinWriteStreamRequest{Payload: &wire.TaskExecStdinWriteStreamRequest_Data{Data: buf[:n]}})
			if err != nil {
				break
			}
		}
		w.Send(&wire.TaskExecStdinWriteStreamRequest{Payload: &wire.TaskExecStdinWriteStreamRequest_End{End: &wire.TaskExecStdinWriteStreamEnd{}}})
		if _, err := w.CloseAndRecv(); err != nil {
			return err
		}
	}
	from, err := p.router.TaskExecStdioRead(p.ctx, &wire.TaskExecStdioReadRequest{TaskId: p.task, ExecId: id})
	for err == nil {
		var part *wire.TaskExecStdioReadResponse
		if part, err = from.Recv(); err == nil {
			_, err = out.Write(part.GetData())
		}
	}
	if err != io.EOF {
		return err
	}
	answer, err := p.router.TaskExecWait(p.ctx, &wire.TaskExecWaitRequest{TaskId: p.task, ExecId: id})
	if err == nil && answer.GetCode() != 0 {
		err = fmt.Errorf("status %d", answer.GetCode())
	}
	return err
}
