// Package mcp offers the model the tools of servers that speak the Model Context
// Protocol. Servers run on the user's computer or at an address, whatever sandbox
// the other tools work in; what they say is untrusted text.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/talkops-ai/talkops/runtime/tail"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Server is one server to connect to.
type Server struct {
	Name    string
	Command []string // a program on the user's computer; or
	URL     string   // an address
	Token   string   // for the address; empty: none
	Env     map[string]string
	Dir     string        // where the program starts
	Timeout time.Duration // for connecting, and for each answer
}

// Limits of what a server may offer and answer.
const (
	connectMax     = 30 * time.Second
	toolsMax       = 128
	descriptionMax = 4 << 10  // bytes
	schemaMax      = 64 << 10 // bytes
	textMax        = 40000    // bytes of an answer
	frameMax       = 8 << 20  // bytes of one message
	nameMax        = 64
	endMax         = 3 * time.Second // for a program to end by itself
)

// A Client is a connected server. It is safe for concurrent use.
type Client struct {
	server  Server
	session *protocol.ClientSession
	tools   []tool.Tool
	said    tail.Buffer
	stop    context.CancelCauseFunc // ends the server's program
	ended   chan struct{}           // closed when the program has ended
}

// Connect starts or reaches a server and lists its tools. Host is the user's
// computer, agent names the program that connects and its version.
func Connect(ctx context.Context, s Server, host sandbox.Sandbox, agent, version string) (*Client, error) {
	c := &Client{server: s, stop: func(error) {}, ended: make(chan struct{})}
	within, cancel := context.WithTimeout(ctx, min(connectMax, s.Timeout))
	defer cancel()
	var transport protocol.Transport
	if s.URL != "" {
		close(c.ended)
		transport = &protocol.StreamableClientTransport{
			Endpoint: s.URL, HTTPClient: client(s), DisableStandaloneSSE: true, MaxRetries: 1, MaxEventSize: frameMax,
		}
	} else {
		t, err := c.program(ctx, host)
		if err != nil {
			return nil, err
		}
		transport = t
	}
	fail := func(err error) (*Client, error) {
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %v", min(connectMax, s.Timeout))
		}
		c.Close()
		if last := clip(strings.Join(c.said.Lines(1), ""), 300); last != "" {
			err = fmt.Errorf("%w; it says: %s", err, last)
		}
		return nil, fmt.Errorf("MCP server %s: %w", s.Name, err)
	}
	session, err := protocol.NewClient(&protocol.Implementation{Name: agent, Version: version}, &protocol.ClientOptions{}).Connect(within, transport, nil)
	if err != nil {
		return fail(err)
	}
	c.session = session
	for t, err := range session.Tools(within, nil) {
		if err != nil {
			return fail(err)
		}
		if len(c.tools) == toolsMax {
			break
		}
		if offered, ok := c.offer(t); ok {
			c.tools = append(c.tools, offered)
		}
	}
	return c, nil
}

// program starts the server's program, whose standard streams carry the messages.
func (c *Client) program(ctx context.Context, host sandbox.Sandbox) (protocol.Transport, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	c.stop = stop
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	go func() {
		defer close(c.ended)
		_, err := host.Exec(running, sandbox.Cmd{ID: id.String(), Args: c.server.Command, Dir: c.server.Dir, Env: c.server.Env, Stdin: inRead, Stdout: outWrite, Stderr: &c.said})
		if err == nil {
			err = errors.New("its program has ended")
		}
		outWrite.CloseWithError(err)
		inRead.CloseWithError(err)
	}()
	return &protocol.IOTransport{Reader: outRead, Writer: inWrite, MaxLineLength: frameMax}, nil
}

// Tools are what the server offers.
func (c *Client) Tools() []tool.Tool { return c.tools }

// Close ends the connection, and the server's program with all it started.
func (c *Client) Close() error {
	if c.session != nil {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			c.session.Close() // the program is ended below, whatever this says
		}()
		select {
		case <-closed:
		case <-time.After(endMax):
		}
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(endMax):
	}
	c.stop(errors.New("the session has ended"))
	<-c.ended
	return nil
}

// client speaks HTTP to the server alone: the token goes nowhere else.
func client(s Server) *http.Client {
	return &http.Client{
		Transport: bearer{s.Token, http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the server sends us elsewhere, which is not followed")
		},
	}
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// offer is a tool of the server's as the model gets it, if it can have it.
func (c *Client) offer(t *protocol.Tool) (tool.Tool, bool) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil || len(schema) > schemaMax || t.Name == "" || strings.Trim(t.Name, nameRunes) != "" {
		return nil, false
	}
	var parameters map[string]any
	if json.Unmarshal(schema, &parameters) != nil || parameters["type"] != "object" {
		return nil, false
	}
	name := "mcp_" + plain(c.server.Name) + "_" + plain(t.Name)
	if len(name) > nameMax {
		return nil, false
	}
	for _, other := range c.tools {
		if other.Name() == name {
			return nil, false
		}
	}
	return remote{c, t.Name, name, fmt.Sprintf("Tool of the MCP server %q, which is not in the sandbox.\n\n%s", c.server.Name, clip(t.Description, descriptionMax)), parameters}, true
}

// nameRunes are what the name of a tool may hold. Names stand in questions, in rules
// and in the hints for them, which must mean one thing only.
const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:"

// plain is a name with only what models take in the name of a tool.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// remote is one tool of a server.
type remote struct {
	c                      *Client
	own, name, description string
	parameters             map[string]any
}

func (r remote) Name() string               { return r.name }
func (r remote) Description() string        { return r.description }
func (r remote) Parameters() map[string]any { return r.parameters }

func (r remote) Plan(input string) (tool.Plan, error) {
	args, err := arguments(input)
	if err != nil {
		return tool.Plan{Effect: tool.Leaves}, err
	}
	text, err := json.Marshal(args)
	if err != nil {
		return tool.Plan{Effect: tool.Leaves}, err
	}
	return tool.Plan{Effect: tool.Leaves, URL: "mcp://" + r.c.server.Name + "/" + r.own, Query: string(text)}, nil
}

func arguments(input string) (map[string]any, error) {
	args := map[string]any{}
	if err := json.Unmarshal([]byte(input), &args); err != nil {
		return nil, &sandbox.Error{Code: sandbox.CodeInvalidArgument, Msg: "the input is not one JSON object"}
	}
	return args, nil
}

func (r remote) Run(ctx context.Context, input string, _ func(tool.Output)) (tool.Result, error) {
	args, err := arguments(input)
	if err != nil {
		return tool.Result{}, err
	}
	within, cancel := context.WithTimeout(ctx, r.c.server.Timeout)
	defer cancel()
	got, err := r.c.session.CallTool(within, &protocol.CallToolParams{Name: r.own, Arguments: args})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case within.Err() != nil:
		return tool.Result{Code: sandbox.CodeTimeout, Text: fmt.Sprintf("The server %s gave no answer within %v.", r.c.server.Name, r.c.server.Timeout)}, nil
	case err != nil:
		return tool.Result{Code: sandbox.CodeUnavailable, Text: fmt.Sprintf("The server %s failed: %v", r.c.server.Name, err)}, nil
	}
	result := tool.Result{Text: text(got)}
	if got.IsError {
		result.Code = sandbox.CodeInternal
	}
	return result, nil
}

// text is an answer as the model reads it.
func text(got *protocol.CallToolResult) string {
	var b strings.Builder
	for _, c := range got.Content {
		switch c := c.(type) {
		case *protocol.TextContent:
			b.WriteString(c.Text)
		case *protocol.EmbeddedResource:
			if c.Resource != nil {
				b.WriteString(c.Resource.Text)
			}
		case *protocol.ResourceLink:
			fmt.Fprintf(&b, "[a resource: %s]", c.URI)
		default:
			b.WriteString("[content that is not text]")
		}
		b.WriteByte('\n')
	}
	if len(got.Content) == 0 && got.StructuredContent != nil {
		if data, err := json.Marshal(got.StructuredContent); err == nil {
			b.Write(data)
		}
	}
	if b.Len() <= textMax {
		return strings.ToValidUTF8(b.String(), "\ufffd")
	}
	return strings.ToValidUTF8(b.String()[:textMax], "\ufffd") + fmt.Sprintf("\n[%d bytes are left out]", b.Len()-textMax)
}
