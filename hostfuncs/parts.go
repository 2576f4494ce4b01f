package hostfuncs

import (
	"bytes"
	"compress/gzip"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/talkops-ai/talkops/sdk/abi"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A body is what a request sends: bytes that can be sent again, or a reader that
// is read once.
type body struct {
	data   []byte
	source io.Reader // nil: data
	size   int64     // of source; -1: not known
	typ    string    // content type, if the host makes it
}

// bodyOf makes the body of a request that is not sent in pieces.
func (c *Call) bodyOf(r abi.HTTPRequest) (body, *abi.Error) {
	invalid := func(format string, args ...any) (body, *abi.Error) {
		return body{}, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: fmt.Sprintf(format, args...)}
	}
	ways := 0
	for _, given := range []bool{r.Body != "" || r.BodyB64 != "", r.BodyRef != 0, r.BodySent, len(r.Parts) > 0, len(r.Multipart) > 0} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return invalid("a request has one body")
	}
	b := body{size: -1}
	var err *abi.Error
	switch {
	case r.BodyRef != 0:
		b.source, b.size, err = c.partReader(abi.Part{Ref: r.BodyRef})
		if r.BodySize > 0 {
			b.size = r.BodySize
		}
	case len(r.Parts) > 0:
		b, err = c.join(r.Parts)
	case len(r.Multipart) > 0:
		b, err = c.multipart(r.Multipart)
	default:
		b.data, err = inlineBody(r)
	}
	if err != nil {
		return body{}, err
	}
	switch r.Encode {
	case "":
	case "gzip":
		if b.source == nil {
			b.data, _ = io.ReadAll(newGzip(bytes.NewReader(b.data)))
		} else {
			b.source, b.size = newGzip(b.source), -1
		}
	default:
		return invalid("encode has no %q", r.Encode)
	}
	return b, nil
}

// join puts parts one after the other. Without a handle among them they are bytes.
func (c *Call) join(parts []abi.Part) (body, *abi.Error) {
	b := body{}
	var readers []io.Reader
	streamed := false
	for _, p := range parts {
		r, size, err := c.partReader(p)
		if err != nil {
			return body{}, err
		}
		readers = append(readers, r)
		if b.size >= 0 && size >= 0 {
			b.size += size
		} else {
			b.size = -1
		}
		streamed = streamed || p.Ref != 0
	}
	b.source = io.MultiReader(readers...)
	if !streamed {
		b.data, _ = io.ReadAll(b.source)
		b.source = nil
	}
	return b, nil
}

// multipart makes a form of parts.
func (c *Call) multipart(parts []abi.Part) (body, *abi.Error) {
	boundary := "talkops-" + crand.Text()
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", "")
	var all []abi.Part
	for _, p := range parts {
		head := textproto.MIMEHeader{}
		for k, v := range p.Headers {
			head.Set(k, strings.NewReplacer("\r", "", "\n", "").Replace(v))
		}
		disposition := fmt.Sprintf(`form-data; name="%s"`, quote.Replace(p.Name))
		if p.Filename != "" {
			disposition += fmt.Sprintf(`; filename="%s"`, quote.Replace(p.Filename))
			if head.Get("Content-Type") == "" {
				head.Set("Content-Type", "application/octet-stream")
			}
		}
		head.Set("Content-Disposition", disposition)
		var text strings.Builder
		fmt.Fprintf(&text, "--%s\r\n", boundary)
		for _, k := range slices.Sorted(maps.Keys(head)) {
			if strings.ContainsAny(k, ": \r\n") {
				return body{}, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: "a part's header is not valid"}
			}
			fmt.Fprintf(&text, "%s: %s\r\n", k, head.Get(k))
		}
		text.WriteString("\r\n")
		all = append(all, abi.Part{Text: text.String()}, abi.Part{Text: p.Text, B64: p.B64, Ref: p.Ref, As: p.As}, abi.Part{Text: "\r\n"})
	}
	b, err := c.join(append(all, abi.Part{Text: "--" + boundary + "--\r\n"}))
	b.typ = "multipart/form-data; boundary=" + boundary
	return b, err
}

// partReader reads one part. Size is -1 if it is not known.
func (c *Call) partReader(p abi.Part) (r io.Reader, size int64, failure *abi.Error) {
	invalid := func(format string, args ...any) (io.Reader, int64, *abi.Error) {
		return nil, 0, &abi.Error{Kind: string(sandbox.CodeInvalidArgument), Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case p.Ref == 0 && p.As != "" && p.As != "raw":
		return invalid("as is for a part with ref")
	case p.B64 != "":
		data, err := base64.StdEncoding.DecodeString(p.B64)
		if err != nil {
			return invalid("a part's b64 is not base64")
		}
		return bytes.NewReader(data), int64(len(data)), nil
	case p.Ref == 0:
		return strings.NewReader(p.Text), int64(len(p.Text)), nil
	}
	r, ok := c.handles[p.Ref].(io.Reader)
	if !ok {
		return invalid("%d is no handle to read from", p.Ref)
	}
	size = -1
	if f, ok := r.(*openFile); ok && f.temp == "" {
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
	}
	switch p.As {
	case "", "raw":
		return r, size, nil
	case "base64":
		if size >= 0 {
			size = int64(base64.StdEncoding.EncodedLen(int(size)))
		}
		return &changed{r: r, change: toBase64}, size, nil
	case "json":
		return &changed{r: r, change: toJSON}, -1, nil
	}
	return invalid("a part cannot be sent as %q", p.As)
}

// A changed reader gives what its reader does in another form.
type changed struct {
	r      io.Reader
	change func(in []byte, last bool) (out []byte, used int)
	in     []byte
	out    []byte
	err    error
}

func (c *changed) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.err != nil && len(c.in) == 0 {
			return 0, c.err
		}
		if c.err == nil {
			buf := make([]byte, 32<<10)
			n, err := c.r.Read(buf)
			c.in, c.err = append(c.in, buf[:n]...), err
		}
		last := c.err == io.EOF
		if c.err != nil && !last {
			return 0, c.err
		}
		out, used := c.change(c.in, last)
		c.out, c.in = out, c.in[used:]
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

func toBase64(in []byte, last bool) ([]byte, int) {
	n := len(in)
	if !last {
		n -= n % 3
	}
	return []byte(base64.StdEncoding.EncodeToString(in[:n])), n
}

// toJSON is the inside of a JSON string. What is not UTF-8 becomes U+FFFD.
func toJSON(in []byte, last bool) ([]byte, int) {
	n := len(in)
	for cut := 1; !last && cut < utf8.UTFMax && cut <= n; cut++ {
		if utf8.RuneStart(in[n-cut]) {
			if !utf8.FullRune(in[n-cut:]) {
				n -= cut
			}
			break
		}
	}
	text, _ := json.Marshal(string(in[:n]))
	return text[1 : len(text)-1], n
}

// A gzipped reader compresses what its reader gives.
type gzipped struct {
	r   io.Reader
	w   *gzip.Writer
	out bytes.Buffer
	err error
}

func newGzip(r io.Reader) *gzipped {
	g := &gzipped{r: r}
	g.w = gzip.NewWriter(&g.out)
	return g
}

func (g *gzipped) Read(p []byte) (int, error) {
	for g.out.Len() == 0 {
		if g.err != nil {
			return 0, g.err
		}
		buf := make([]byte, 32<<10)
		n, err := g.r.Read(buf)
		g.w.Write(buf[:n])
		if g.err = err; err == io.EOF {
			g.w.Close()
		} else if err != nil {
			return 0, err
		}
	}
	return g.out.Read(p)
}
