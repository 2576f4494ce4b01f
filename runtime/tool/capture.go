package tool

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// A capture keeps the beginning and the end of a stream: as much as a log may
// have. It takes everything, so a producer is never stopped by it. It is not
// safe for concurrent use.
type capture struct {
	show int // bytes shown whole
	half int // bytes kept at either end
	pass func([]byte)

	head []byte
	tail []byte // a ring once it has half bytes
	at   int    // where the ring begins
	size int
}

func newCapture(opts Options, pass func([]byte)) *capture {
	return &capture{show: opts.OutputBytes, half: max(opts.LogBytes/2, opts.OutputBytes), pass: pass}
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.size += n
	c.pass(bytes.Clone(p))
	take := min(n, c.half-len(c.head))
	c.head = append(c.head, p[:take]...)
	p = p[take:]
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	take = min(len(p), c.half-len(c.tail))
	c.tail = append(c.tail, p[:take]...)
	for p = p[take:]; len(p) > 0; {
		m := copy(c.tail[c.at:], p)
		c.at = (c.at + m) % c.half
		p = p[m:]
	}
	return n, nil
}

// end returns the last n bytes of the stream, or all if it has fewer.
func (c *capture) end(n int) []byte {
	all := c.tail
	if len(all) < n {
		all = append(bytes.Clone(c.head[max(0, len(c.head)-(n-len(all))):]), all...)
	} else if c.at > 0 {
		all = append(bytes.Clone(c.tail[c.at:]), c.tail[:c.at]...)
	}
	return all[max(0, len(all)-n):]
}

// shown returns what the model sees: all of the stream, or its beginning and
// its end. Characters are not cut in two.
func (c *capture) shown() (head, tail []byte) {
	if c.size <= c.show {
		return c.head, nil
	}
	head, tail = c.head[:c.show/2], c.end(c.show/2)
	for i := 1; i < utf8.UTFMax && i < len(head); i++ {
		if last := head[len(head)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 1 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return head, tail
}

// log returns the stream as it is kept, with a mark where something is missing.
func (c *capture) log() io.Reader {
	parts := []io.Reader{bytes.NewReader(c.head)}
	if left := c.size - len(c.head) - len(c.tail); left > 0 {
		parts = append(parts, bytes.NewReader(fmt.Appendf(nil, "\n[log cut: %d bytes left out]\n", left)))
	}
	return io.MultiReader(append(parts, bytes.NewReader(c.tail[c.at:]), bytes.NewReader(c.tail[:c.at]))...)
}
