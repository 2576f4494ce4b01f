package web

import (
	"context"
	_ "embed" // fetch_url.md
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

//go:embed fetch_url.md
var fetchDoc string

// fetch is the tool fetch_url.
type fetch struct {
	opts   Options
	client *http.Client
}

type fetchArgs struct {
	URL    string `json:"url"`
	Offset int    `json:"offset"`
}

func (f *fetch) Name() string        { return "fetch_url" }
func (f *fetch) Description() string { return strings.TrimSpace(fetchDoc) }

func (f *fetch) Parameters() map[string]any {
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"url":    map[string]any{"type": "string", "description": "The address, beginning with https:// or http://."},
			"offset": map[string]any{"type": "integer", "description": "Go on at this byte of the text; default 0."},
		},
		"required":             []string{"url"},
		"additionalProperties": false,
	}
}

func (f *fetch) Plan(input string) (tool.Plan, error) {
	u, _, err := f.parse(input)
	if err != nil {
		return tool.Plan{Effect: tool.Leaves}, err
	}
	return tool.Plan{Effect: tool.Leaves, URL: u.String()}, nil
}

func (f *fetch) parse(input string) (*url.URL, fetchArgs, error) {
	var args fetchArgs
	if err := decode(input, &args); err != nil {
		return nil, args, err
	}
	u, err := parseURL(args.URL)
	if err == nil && args.Offset < 0 {
		err = invalid("offset is %d; it cannot be negative", args.Offset)
	}
	return u, args, err
}

// parseURL reads an address of the web.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return nil, invalid("url is required")
	case err != nil:
		return nil, invalid("the url cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("the url must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, invalid("the url names no host")
	case u.User != nil:
		return nil, invalid("the url holds a user name or password, which this tool does not send")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' }):
		// Letters of other scripts are sent as others that look the same: one name for a host, for rules and eyes.
		return nil, invalid("the url's host holds other than ASCII letters; write it as it is sent, with xn--")
	case len(u.String()) > 4096:
		return nil, invalid("the url is longer than 4,096 characters")
	}
	u.Host, u.Fragment, u.RawFragment = strings.ToLower(u.Host), "", ""
	return u, nil
}

func (f *fetch) Run(ctx context.Context, input string, _ func(tool.Output)) (tool.Result, error) {
	u, args, err := f.parse(input)
	if err != nil {
		return failed(err), nil
	}
	within, cancel := context.WithTimeout(ctx, f.opts.Time)
	defer cancel()
	text, err := f.page(within, u)
	switch {
	case err != nil && ctx.Err() != nil:
		_, err = sandbox.ExitOf(ctx)
		return failed(err), err
	case err != nil && within.Err() != nil:
		return failed(sandbox.Errorf(sandbox.CodeTimeout, "%s did not answer within %v", u.Host, f.opts.Time)), nil
	case err != nil:
		return failed(err), nil
	}
	if args.Offset > len(text.body) {
		return failed(sandbox.Errorf(sandbox.CodeOutOfRange, "offset %d is behind the end; the text has %d bytes", args.Offset, len(text.body))), nil
	}
	return tool.Result{Text: text.piece(args.Offset, f.opts.ShowBytes)}, nil
}

// A text is what a page says.
type text struct {
	source string
	body   string
	cut    bool // the page goes on, but no more is read
}

// piece is the part of the text from offset on that is shown in one call.
func (t text) piece(offset, most int) string {
	for offset < len(t.body) && !utf8.RuneStart(t.body[offset]) {
		offset++
	}
	end := min(len(t.body), offset+most)
	for end < len(t.body) && end > offset && !utf8.RuneStart(t.body[end]) {
		end--
	}
	var b strings.Builder
	fmt.Fprintf(&b, "source: %s\n\n%s", t.source, t.body[offset:end])
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	switch {
	case end < len(t.body):
		fmt.Fprintf(&b, "[bytes %d to %d of %d; go on with offset %d]\n", offset, end, len(t.body), end)
	case t.cut:
		b.WriteString("[the page is larger; the rest was not read]\n")
	}
	return b.String()
}

// page reads the page at u, following redirects that stay on its host or lead to
// one that needs no question.
func (f *fetch) page(ctx context.Context, u *url.URL) (text, error) {
	first := u
	for range redirects + 1 {
		resp, err := f.get(ctx, u)
		if err != nil {
			return text{}, err
		}
		where := resp.Header.Get("Location")
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			resp.Body.Close()
			next, err := u.Parse(where)
			if err != nil || where == "" {
				return text{}, sandbox.Errorf(sandbox.CodeUnavailable, "%s redirects to nowhere", u.Host)
			}
			if next, err = parseURL(next.String()); err != nil {
				return text{}, sandbox.Errorf(sandbox.CodeUnsupported, "%s redirects to an address this tool does not take", u.Host)
			}
			if !f.follows(first, next) {
				return text{}, sandbox.Errorf(sandbox.CodePermissionDenied, "%s redirects to %s, which is another place; call fetch_url with that address if you need it", first, next)
			}
			u = next
			continue
		}
		defer resp.Body.Close()
		return f.read(ctx, u, resp)
	}
	return text{}, sandbox.Errorf(sandbox.CodeUnavailable, "%s redirects more than %d times", first.Host, redirects)
}

// follows reports whether a redirect from one address to the other needs no new
// question.
func (f *fetch) follows(from, to *url.URL) bool {
	if from.Scheme == "https" && to.Scheme != "https" || f.opts.Barred(to.String()) {
		return false
	}
	same := from.Hostname() == to.Hostname() && (Port(from) == Port(to) || from.Port() == "" && to.Port() == "")
	return same || f.opts.Allowed(to.Hostname(), Port(to))
}

// Port is the port that an address leads to.
func Port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

func (f *fetch) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, invalid("the url cannot be asked for")
	}
	req.Header.Set("User-Agent", f.opts.UserAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, netError(u.Host, err)
	}
	return resp, nil
}

// netError words what kept a host from answering.
func netError(host string, err error) error {
	if errors.Is(err, ErrAddress) {
		return sandbox.Errorf(sandbox.CodePermissionDenied, "%s is not reached: its address is not one of the public internet", host)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return sandbox.Errorf(sandbox.CodeUnavailable, "%s cannot be reached: %v", host, err)
}

// read takes the text out of an answer.
func (f *fetch) read(ctx context.Context, u *url.URL, resp *http.Response) (text, error) {
	if resp.StatusCode != http.StatusOK {
		code := sandbox.CodeUnavailable
		switch resp.StatusCode {
		case http.StatusNotFound, http.StatusGone:
			code = sandbox.CodeNotFound
		case http.StatusUnauthorized, http.StatusForbidden:
			code = sandbox.CodePermissionDenied
		case http.StatusTooManyRequests:
			code = sandbox.CodeRateLimited
		}
		return text{}, sandbox.Errorf(code, "%s answered %d %s", u, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	data, err := io.ReadAll(io.LimitReader(resp.Body, f.opts.PageBytes+1))
	if err != nil {
		return text{}, netError(u.Host, err)
	}
	t := text{source: u.String()}
	if int64(len(data)) > f.opts.PageBytes {
		data, t.cut = data[:f.opts.PageBytes], true
	}
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(data))
	}
	body := decoded(data, params["charset"])
	switch {
	case kind == "text/html", kind == "application/xhtml+xml":
		if body, err = markdown(ctx, body, u); err != nil {
			return text{}, sandbox.Errorf(sandbox.CodeUnsupported, "the page at %s cannot be turned into text", u)
		}
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml"), strings.HasSuffix(kind, "yaml"),
		kind == "application/toml", kind == "application/javascript", kind == "application/x-sh":
	default:
		return text{}, sandbox.Errorf(sandbox.CodeUnsupported, "%s is %s, not text", u, plain(kind))
	}
	t.body = plain(body)
	return t, nil
}

// decoded is data as UTF-8. Western European pages that say so are converted.
func decoded(data []byte, charset string) string {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "windows-1252":
		var b strings.Builder
		for _, c := range data {
			b.WriteRune(rune(c))
		}
		return b.String()
	}
	return string(data)
}

// markdown converts a page; links in it become whole addresses.
func markdown(ctx context.Context, page string, at *url.URL) (string, error) {
	c := converter.NewConverter(
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
		// Escapes cost a reader more than they give, and on a hostile page minutes.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
	)
	return c.ConvertString(page, converter.WithContext(ctx), converter.WithDomain(at.Scheme+"://"+at.Host))
}
