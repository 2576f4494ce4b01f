// Package redact blots out secrets whose values are known, in whatever is shown,
// kept or sent to a model.
package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "***secret***"

const (
	shortest = 6  // a value with fewer bytes would be found everywhere
	inner    = 10 // of base64 text, and a line of a value with several
)

// A Redactor knows secrets and blots them out: as they are, in base64, in
// addresses and inside JSON. It is safe for concurrent use. A nil Redactor knows
// none.
type Redactor struct {
	forms map[[2]byte][]string // by their first two bytes, the longest first
	pairs [1 << 10]uint64      // the keys of forms as bits
}

// New returns a Redactor for values. Those shorter than 6 bytes are left, since
// they would be found in everything.
func New(values ...string) *Redactor {
	r := &Redactor{forms: map[[2]byte][]string{}}
	seen := map[string]bool{}
	for _, v := range values {
		for _, form := range forms(v) {
			if len(form) < shortest || seen[form] {
				continue
			}
			seen[form] = true
			key := [2]byte{form[0], form[1]}
			r.forms[key] = append(r.forms[key], form)
			n := int(form[0])<<8 | int(form[1])
			r.pairs[n>>6] |= 1 << (n & 63)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	for _, list := range r.forms {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return r
}

// forms are the ways in which a value may turn up.
func forms(value string) []string {
	trimmed := strings.TrimSpace(value)
	if len(trimmed) < shortest {
		return nil
	}
	all := []string{value, trimmed, quoted(trimmed, true), quoted(trimmed, false)}
	if strings.Contains(trimmed, "\n") { // a key in lines may be shown line by line
		for line := range strings.Lines(trimmed) {
			if line = strings.TrimSpace(line); len(line) >= inner && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	for _, text := range []string{value, trimmed, trimmed + "\n"} {
		std := base64.StdEncoding.EncodeToString([]byte(text))
		all = append(all, std, base64.URLEncoding.EncodeToString([]byte(text)))
		for _, width := range []int{64, 76} { // as programs wrap it
			for line := range slices.Chunk([]byte(std), width) {
				if len(std) > width && len(line) >= inner {
					all = append(all, string(line))
				}
			}
		}
	}
	all = append(all, within(trimmed)...)
	digits := hex.EncodeToString([]byte(trimmed))
	backwards := []byte(trimmed)
	slices.Reverse(backwards)
	all = append(all, digits, strings.ToUpper(digits), string(backwards), strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(trimmed)), "="))
	for line := range slices.Chunk([]byte(digits), 60) { // as xxd wraps it
		if len(digits) > 60 && len(line) >= 2*shortest {
			all = append(all, string(line))
		}
	}
	for _, escaped := range []string{url.QueryEscape(trimmed), url.PathEscape(trimmed), strings.ReplaceAll(url.QueryEscape(trimmed), "+", "%20")} {
		all = append(all, escaped, lowerHex(escaped))
	}
	return all
}

// quoted is value as it stands in JSON.
func quoted(value string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(value); err != nil {
		return value
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// within are the parts of base64 text that are the same wherever in it value
// begins.
func within(value string) []string {
	var all []string
	for lead := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(append(make([]byte, lead), value...))
			start := (lead*8 + 5) / 6
			end := (lead + len(value)) * 8 / 6
			if end-start >= inner {
				all = append(all, text[start:end])
			}
		}
	}
	return all
}

// lowerHex is text with its percent escapes in lower case.
func lowerHex(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// Text returns s with every secret blotted out.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	out, _, changed := scan(r, nil, s, true)
	if !changed {
		return s
	}
	return string(out)
}

// Before is Text, and blots out as well what is left of a secret where a text was
// cut in front of mark.
func (r *Redactor) Before(mark, s string) string {
	s = r.Text(s)
	if r == nil || !strings.Contains(s, mark) {
		return s
	}
	parts := strings.Split(s, mark)
	for i, part := range parts[:len(parts)-1] {
		parts[i] = r.end(part)
	}
	return strings.Join(parts, mark)
}

// end blots out the longest beginning of a secret at the end of text.
func (r *Redactor) end(text string) string {
	longest := 0
	for _, list := range r.forms {
		for _, form := range list {
			for n := min(len(form)-1, len(text)); n >= shortest && n > longest; n-- {
				if strings.HasSuffix(text, form[:n]) {
					longest = n
				}
			}
		}
	}
	if longest == 0 {
		return text
	}
	return text[:len(text)-longest] + Mark
}

// JSON returns JSON text with the secrets in its strings blotted out. It stays
// valid JSON.
func (r *Redactor) JSON(text []byte) []byte {
	if r == nil {
		return text
	}
	var out []byte
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := i + 1
		escapes := false
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				escapes = true
				end++
			}
			end++
		}
		if end >= len(text) {
			break // not JSON
		}
		value := string(text[i+1 : end])
		if escapes {
			if json.Unmarshal(text[i:end+1], &value) != nil {
				i = end
				continue
			}
		}
		if clean := r.Text(value); clean != value {
			q, _ := json.Marshal(clean)
			out = append(append(out, text[from:i]...), q...)
			from = end + 1
		}
		i = end
	}
	if out == nil {
		return text
	}
	return append(out, text[from:]...)
}

// Value blots out the secrets in every string of *v, by way of its JSON.
func Value[T any](r *Redactor, v *T) error {
	if r == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	clean := r.JSON(b)
	if bytes.Equal(clean, b) {
		return nil
	}
	var fresh T
	if err := json.Unmarshal(clean, &fresh); err != nil {
		return err
	}
	*v = fresh
	return nil
}

// scan appends text to out with secrets blotted out, and returns what is left of
// text: an end of it that may be the beginning of a secret, unless it is the last.
func scan[T string | []byte](r *Redactor, out []byte, text T, last bool) ([]byte, T, bool) {
	from, changed := 0, false
	for i := 0; i < len(text); i++ {
		if i+1 == len(text) {
			if !last && r.begins(text[i]) {
				return append(out, text[from:i]...), text[i:], changed
			}
			break
		}
		n := int(text[i])<<8 | int(text[i+1])
		if r.pairs[n>>6]>>(n&63)&1 == 0 {
			continue
		}
		rest := text[i:]
		found := 0
		for _, form := range r.forms[[2]byte{text[i], text[i+1]}] {
			if len(rest) >= len(form) {
				if string(rest[:len(form)]) == form {
					found = len(form)
					break
				}
				continue
			}
			if !last && form[:len(rest)] == string(rest) {
				return append(out, text[from:i]...), rest, changed
			}
		}
		if found == 0 {
			continue
		}
		out = append(append(out, text[from:i]...), Mark...)
		changed = true
		i += found - 1
		from = i + 1
	}
	return append(out, text[from:]...), text[len(text):], changed
}

// begins reports whether a secret begins with a byte.
func (r *Redactor) begins(b byte) bool {
	for n := int(b) << 2; n < int(b)<<2+4; n++ {
		if r.pairs[n] != 0 {
			return true
		}
	}
	return false
}

// A Stream blots secrets out of text that comes in pieces, also where one is cut.
// It is not safe for concurrent use. The zero Stream changes nothing.
type Stream struct {
	r    *Redactor
	held []byte // may be the beginning of a secret
}

// Stream returns a new Stream.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Next takes the next piece and returns what can be told by now.
func (s *Stream) Next(piece []byte) []byte {
	if s.r == nil {
		return piece
	}
	text := piece
	if len(s.held) > 0 {
		text = append(s.held, piece...)
	}
	out, rest, _ := scan(s.r, make([]byte, 0, len(text)), text, false)
	s.held = bytes.Clone(rest)
	return out
}

// Rest returns what was held back; the text has ended.
func (s *Stream) Rest() []byte {
	if s.r == nil || len(s.held) == 0 {
		return nil
	}
	out, _, _ := scan(s.r, nil, s.held, true)
	s.held = nil
	return out
}

// Writer returns a writer that blots secrets out of what it hands on to w. Close
// writes what was held back; it does not close w.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{w, r.Stream()} }

type writer struct {
	w io.Writer
	s *Stream
}

func (w *writer) Write(p []byte) (int, error) {
	if out := w.s.Next(p); len(out) > 0 {
		if _, err := w.w.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if out := w.s.Rest(); len(out) > 0 {
		_, err := w.w.Write(out)
		return err
	}
	return nil
}
