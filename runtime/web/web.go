// Package web has the tools that look things up on the web: fetch_url and
// web_search. They act from the user's computer, whatever sandbox the other tools
// work in, so a call needs approval wherever a session runs. They reach public
// addresses only and carry no credentials, cookies or proxy of the user.
package web

import (
	"encoding/json"
	"io"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Options are the limits of the tools. The zero value of every field but Search
// gives its default.
type Options struct {
	UserAgent string
	Search    Searcher                     // answers web_search; nil: there is no such tool
	Allowed   func(host, port string) bool // hosts a redirect may lead to without being asked for; nil: none
	Barred    func(address string) bool    // addresses that no redirect may lead to unasked, whatever the host; nil: none
	Check     func(netip.Addr) error       // whether an address may be dialled; nil: Public
	Time      time.Duration                // of one call; 0: 30 seconds
	PageBytes int64                        // of a page, unpacked; 0: 2 MiB
	ShowBytes int                          // of what the model sees in one call; 0: 40,000
}

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "talkops"
	}
	if o.Check == nil {
		o.Check = Public
	}
	if o.Allowed == nil {
		o.Allowed = func(string, string) bool { return false }
	}
	if o.Barred == nil {
		o.Barred = func(string) bool { return false }
	}
	if o.Time == 0 {
		o.Time = 30 * time.Second
	}
	if o.PageBytes == 0 {
		o.PageBytes = 2 << 20
	}
	if o.ShowBytes == 0 {
		o.ShowBytes = 40_000
	}
	return o
}

// redirects is how many a page may take.
const redirects = 5

// Tools returns fetch_url, and web_search if there is something to search with.
func Tools(opts Options) []tool.Tool {
	opts = opts.withDefaults()
	tools := []tool.Tool{&fetch{opts, newClient(newDialer(opts.Check))}}
	if opts.Search != nil {
		tools = append(tools, &search{opts})
	}
	return tools
}

// decode reads a tool's input, a JSON object, into args.
func decode(input string, args any) error {
	dec := json.NewDecoder(strings.NewReader(input))
	dec.DisallowUnknownFields()
	if err := dec.Decode(args); err != nil {
		return invalid("the input is not what this tool takes: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return invalid("the input goes on after its JSON object")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return sandbox.Errorf(sandbox.CodeInvalidArgument, format, args...)
}

// failed is a result that tells the model of err.
func failed(err error) tool.Result {
	code := sandbox.CodeOf(err)
	return tool.Result{Code: code, Text: "error " + string(code) + ": " + plain(err.Error())}
}

// plain is text from a stranger without characters that steer a terminal or hide
// in what is read.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
			return r
		case r == '\r', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, text)
}
