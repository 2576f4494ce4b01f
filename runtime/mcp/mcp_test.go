package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/talkops-ai/talkops/providers/local"
	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// TestMain is the server's program when it is told to be.
func TestMain(m *testing.M) {
	if how := os.Getenv("SERVE"); how != "" {
		os.Exit(serve(how))
	}
	os.Exit(m.Run())
}

// docs is a server as its authors write them, with the protocol's own library.
func docs() *protocol.Server {
	s := protocol.NewServer(&protocol.Implementation{Name: "docs", Version: "1"}, nil)
	type query struct {
		Q string `json:"q"`
	}
	protocol.AddTool(s, &protocol.Tool{Name: "search", Description: "finds pages"}, func(ctx context.Context, _ *protocol.CallToolRequest, in query) (*protocol.CallToolResult, any, error) {
		switch in.Q {
		case "wait":
			<-ctx.Done()
			return nil, nil, ctx.Err()
		case "much":
			return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: strings.Repeat("x", 3*textMax)}}}, nil, nil
		case "bad":
			return nil, nil, fmt.Errorf("no such page")
		case "exit":
			os.Exit(3)
		}
		return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: "found " + in.Q + " with " + os.Getenv("DOCS_KEY")}}}, nil, nil
	})
	protocol.AddTool(s, &protocol.Tool{Name: strings.Repeat("n", 80), Description: "too long a name"}, func(context.Context, *protocol.CallToolRequest, query) (*protocol.CallToolResult, any, error) {
		return nil, nil, nil
	})
	return s
}

func serve(how string) int {
	switch how {
	case "silent":
		fmt.Fprintln(os.Stderr, "starting up")
		time.Sleep(time.Hour)
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot read docs.db")
		return 4
	case "noise":
		fmt.Println("this is no message")
		time.Sleep(time.Hour)
	}
	if err := docs().Run(context.Background(), &protocol.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

func program(t *testing.T, how string, timeout time.Duration) (*Client, error) {
	t.Helper()
	host, err := local.Provider{}.Open(t.Context(), sandbox.Spec{Dir: t.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Connect(t.Context(), Server{
		Name: "docs", Command: []string{self}, Env: map[string]string{"SERVE": how, "DOCS_KEY": "k-1"}, Dir: host.Info().Dir, Timeout: timeout,
	}, host, "test", "1")
}

func run(t *testing.T, c *Client, q string) tool.Result {
	t.Helper()
	r, err := c.Tools()[0].Run(t.Context(), fmt.Sprintf(`{"q":%q}`, q), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAProgramOffersItsTools(t *testing.T) {
	c, err := program(t, "well", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.Tools()) != 1 || c.Tools()[0].Name() != "mcp_docs_search" {
		t.Fatalf("got %v", c.Tools())
	}
	plan, err := c.Tools()[0].Plan(`{"q":"pods"}`)
	if err != nil || plan != (tool.Plan{Effect: tool.Leaves, URL: "mcp://docs/search", Query: `{"q":"pods"}`}) {
		t.Errorf("got %+v, %v", plan, err)
	}
	if _, err := c.Tools()[0].Plan(`[]`); sandbox.CodeOf(err) != sandbox.CodeInvalidArgument {
		t.Errorf("no object: %v", err)
	}
	if r := run(t, c, "pods"); r.Text != "found pods with k-1\n" || r.Code != "" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "bad"); r.Code == "" || !strings.Contains(r.Text, "no such page") {
		t.Errorf("an error: %+v", r)
	}
	if r := run(t, c, "much"); len(r.Text) > textMax+100 || !strings.Contains(r.Text, "bytes are left out") {
		t.Errorf("much: %d bytes", len(r.Text))
	}
	if r := run(t, c, "exit"); r.Code != sandbox.CodeUnavailable {
		t.Errorf("a program that ends: %+v", r)
	}
	if r := run(t, c, "pods"); r.Code != sandbox.CodeUnavailable {
		t.Errorf("a program that is gone: %+v", r)
	}
}

// What a server calls its tools cannot end a rule or a hint for the shell, nor stand
// for another tool.
func TestNamesThatServersGive(t *testing.T) {
	c := &Client{server: Server{Name: "docs"}}
	for name, want := range map[string]bool{
		"search": true, "pages.search": true, "pages/search": true,
		"x'; touch pwned; '": false, "a b": false, "a\nb": false, "*": false, "a,b": false, "s\u0435arch": false, "$(id)": false, "": false,
	} {
		if _, ok := c.offer(&protocol.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}); ok != want {
			t.Errorf("%q is offered: %v", name, ok)
		}
	}
}

func TestAnAnswerThatDoesNotCome(t *testing.T) {
	c, err := program(t, "well", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.server.Timeout = 200 * time.Millisecond
	if r := run(t, c, "wait"); r.Code != sandbox.CodeTimeout {
		t.Errorf("got %+v", r)
	}
}

func TestAProgramThatCannotBeUsed(t *testing.T) {
	for how, want := range map[string]string{
		"broken": "MCP server docs: .*it says: cannot read docs.db",
		"silent": "MCP server docs: no answer within 2s; it says: starting up",
		"noise":  "MCP server docs: ",
	} {
		c, err := program(t, how, 2*time.Second)
		if err == nil {
			c.Close()
			t.Errorf("%s: connected", how)
			continue
		}
		for _, part := range strings.Split(want, ".*") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q", how, err, want)
			}
		}
	}
}

// A token goes to the address that was named and to no other.
func TestAnAddress(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	var tokens []string
	mcp := protocol.NewStreamableHTTPHandler(func(*http.Request) *protocol.Server { return docs() }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		tokens = append(tokens, r.Header.Get("Authorization"))
		mcp.ServeHTTP(w, r)
	}))
	defer srv.Close()
	c, err := Connect(t.Context(), Server{Name: "docs", URL: srv.URL, Token: "t-1", Timeout: time.Minute}, nil, "test", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r := run(t, c, "pods"); !strings.HasPrefix(r.Text, "found pods") {
		t.Errorf("got %+v", r)
	}
	for _, token := range tokens {
		if token != "Bearer t-1" {
			t.Errorf("token %q", token)
		}
	}
	if c, err := Connect(t.Context(), Server{Name: "docs", URL: srv.URL + "/moved", Token: "t-1", Timeout: time.Minute}, nil, "test", "1"); err == nil {
		c.Close()
		t.Error("a redirect is followed")
	}
	if len(elsewhere) > 0 {
		t.Errorf("the other server was asked with %q", elsewhere)
	}
}
