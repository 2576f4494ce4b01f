package web

import (
	"bytes"
	"context"
	_ "embed" // web_search.md
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/runtime/tool"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Searcher is a search service.
type Searcher interface {
	// Endpoint is where a query goes.
	Endpoint() string

	// Search returns at most count pages for a query, best first.
	Search(ctx context.Context, query string, count int) ([]Page, error)
}

// A Page is one page that was found.
type Page struct{ Title, URL, Summary string }

// Searchers lists the search services. The first that has what it needs is used,
// unless the user names another.
var Searchers = []string{"brave", "tavily", "searxng"}

// SearchKey is the variable that holds the key of a search service, or "".
func SearchKey(name string) string {
	return map[string]string{"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}[name]
}

// Choose returns the search service of that name, or without a name the first one
// that has what it needs; nil, if none has. Address is that of the user's own
// SearXNG.
func Choose(name, address string, getenv func(string) string) (Searcher, error) {
	if name != "" && !slices.Contains(Searchers, name) {
		return nil, fmt.Errorf("unknown search service %q: %s", name, strings.Join(Searchers, ", "))
	}
	for _, s := range Searchers {
		if name != "" && name != s {
			continue
		}
		switch {
		case s == "searxng" && address != "":
			u, err := parseURL(address)
			if err != nil {
				return nil, fmt.Errorf("web.searxng_url: %w", err)
			}
			return &searxng{at: strings.TrimRight(u.String(), "/")}, nil
		case s == "searxng" && name != "":
			return nil, fmt.Errorf("web.search_provider is searxng, but web.searxng_url is not set")
		case SearchKey(s) == "":
		case getenv(SearchKey(s)) != "":
			key := getenv(SearchKey(s))
			if s == "brave" {
				return &brave{key: key, at: "https://api.search.brave.com/res/v1/web/search"}, nil
			}
			return &tavily{key: key, at: "https://api.tavily.com/search"}, nil
		case name != "":
			return nil, fmt.Errorf("web.search_provider is %s, but %s is not set", s, SearchKey(s))
		}
	}
	return nil, nil
}

//go:embed web_search.md
var searchDoc string

// search is the tool web_search.
type search struct{ opts Options }

type searchArgs struct {
	Query string `json:"query"`
	Count *int   `json:"count"`
}

func (s *search) Name() string        { return "web_search" }
func (s *search) Description() string { return strings.TrimSpace(searchDoc) }

func (s *search) Parameters() map[string]any {
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"query": map[string]any{"type": "string", "description": "What to look for."},
			"count": map[string]any{"type": "integer", "description": "How many results, 1-20; default 8."},
		},
		"required":             []string{"query"},
		"additionalProperties": false,
	}
}

func (s *search) parse(input string) (query string, count int, err error) {
	var args searchArgs
	if err := decode(input, &args); err != nil {
		return "", 0, err
	}
	count = 8
	if args.Count != nil {
		count = *args.Count
	}
	query = strings.TrimSpace(args.Query)
	switch {
	case query == "":
		err = invalid("query is required")
	case len(query) > 400:
		err = invalid("the query is longer than 400 characters")
	case count < 1 || count > 20:
		err = invalid("count is %d; it can be 1-20", count)
	}
	return query, count, err
}

func (s *search) Plan(input string) (tool.Plan, error) {
	query, _, err := s.parse(input)
	if err != nil {
		return tool.Plan{Effect: tool.Leaves}, err
	}
	return tool.Plan{Effect: tool.Leaves, URL: s.opts.Search.Endpoint(), Query: query}, nil
}

func (s *search) Run(ctx context.Context, input string, _ func(tool.Output)) (tool.Result, error) {
	query, count, err := s.parse(input)
	if err != nil {
		return failed(err), nil
	}
	within, cancel := context.WithTimeout(ctx, s.opts.Time)
	defer cancel()
	pages, err := s.opts.Search.Search(within, query, count)
	switch {
	case err != nil && ctx.Err() != nil:
		_, err = sandbox.ExitOf(ctx)
		return failed(err), err
	case err != nil && within.Err() != nil:
		return failed(sandbox.Errorf(sandbox.CodeTimeout, "the search service did not answer within %v", s.opts.Time)), nil
	case err != nil:
		return failed(err), nil
	}
	u, _ := url.Parse(s.opts.Search.Endpoint())
	var b strings.Builder
	fmt.Fprintf(&b, "source: %s\n", u.Host)
	if len(pages) == 0 {
		b.WriteString("\nNothing was found.\n")
	}
	for i, p := range pages[:min(count, len(pages))] {
		fmt.Fprintf(&b, "\n%d. %s\n   %s\n", i+1, short(p.Title, 200), short(p.URL, 500))
		if p.Summary != "" {
			fmt.Fprintf(&b, "   %s\n", short(p.Summary, 600))
		}
	}
	return tool.Result{Text: b.String()}, nil
}

// short is text on one line of at most n characters, without the marks some
// services put around the words that were found.
func short(text string, n int) string {
	text = strings.NewReplacer("<strong>", "", "</strong>", "", "<b>", "", "</b>", "").Replace(text)
	r := []rune(strings.Join(strings.Fields(plain(text)), " "))
	if len(r) > n {
		r = append(r[:n-1], '…')
	}
	return string(r)
}

type brave struct{ key, at string }

func (b *brave) Endpoint() string { return b.at }

func (b *brave) Search(ctx context.Context, query string, count int) ([]Page, error) {
	var answer struct {
		Web struct {
			Results []struct{ Title, URL, Description string }
		}
	}
	q := url.Values{"q": {query}, "count": {strconv.Itoa(count)}, "text_decorations": {"false"}}
	err := ask(ctx, http.MethodGet, b.at+"?"+q.Encode(), http.Header{"X-Subscription-Token": {b.key}}, nil, &answer)
	var pages []Page
	for _, r := range answer.Web.Results {
		pages = append(pages, Page{r.Title, r.URL, r.Description})
	}
	return pages, err
}

type tavily struct{ key, at string }

func (t *tavily) Endpoint() string { return t.at }

func (t *tavily) Search(ctx context.Context, query string, count int) ([]Page, error) {
	var answer struct {
		Results []struct{ Title, URL, Content string }
	}
	body, err := json.Marshal(map[string]any{"query": query, "max_results": count})
	if err != nil {
		return nil, err
	}
	err = ask(ctx, http.MethodPost, t.at, http.Header{"Authorization": {"Bearer " + t.key}, "Content-Type": {"application/json"}}, body, &answer)
	var pages []Page
	for _, r := range answer.Results {
		pages = append(pages, Page{r.Title, r.URL, r.Content})
	}
	return pages, err
}

// searxng is a SearXNG of the user's own, which may well be on a private network.
type searxng struct{ at string }

func (s *searxng) Endpoint() string { return s.at + "/search" }

func (s *searxng) Search(ctx context.Context, query string, _ int) ([]Page, error) {
	var answer struct {
		Results []struct{ Title, URL, Content string }
	}
	q := url.Values{"q": {query}, "format": {"json"}}
	err := ask(ctx, http.MethodGet, s.Endpoint()+"?"+q.Encode(), nil, nil, &answer)
	var pages []Page
	for _, r := range answer.Results {
		pages = append(pages, Page{r.Title, r.URL, r.Content})
	}
	return pages, err
}

// answerBytes bounds what a search service may answer.
const answerBytes = 4 << 20

// ask makes one request to a search service, whose address is the user's choice,
// and reads its JSON. Redirects are not followed: the key is for that service.
func ask(ctx context.Context, method, at string, header http.Header, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return invalid("the search service cannot be asked")
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Accept", "application/json")
	resp, err := newClient(newDialer(func(netip.Addr) error { return nil })).Do(req)
	if err != nil {
		return netError(req.URL.Host, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return sandbox.Errorf(sandbox.CodeUnauthenticated, "the search service at %s does not accept the key or the request (%d)", req.URL.Host, resp.StatusCode)
	case http.StatusTooManyRequests:
		return sandbox.Errorf(sandbox.CodeRateLimited, "the search service at %s has had too many requests", req.URL.Host)
	default:
		return sandbox.Errorf(sandbox.CodeUnavailable, "the search service at %s answered %d", req.URL.Host, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, answerBytes)).Decode(answer); err != nil {
		return sandbox.Errorf(sandbox.CodeUnavailable, "the search service at %s answered something that is not its JSON", req.URL.Host)
	}
	return nil
}
