// Package screentest makes pictures of terminals: text with colours, as a terminal
// hands it out, becomes cells, and cells become an image.
package screentest

import (
	"image/color"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A look is how a cell is drawn.
type look struct {
	fore, back                              color.RGBA
	bold, faint, italic, line, strike, swap bool
}

// A cell is one column of one line. A wide character has two; the second has the
// text "" and the width 0.
type cell struct {
	text  string
	width int
	look  look
}

// The colours of the pictures: one dark terminal.
var (
	paper = color.RGBA{0x17, 0x1a, 0x21, 0xff}
	ink   = color.RGBA{0xd8, 0xdc, 0xe4, 0xff}
)

// ansi16 are the colours that a terminal names by number.
var ansi16 = [16]color.RGBA{
	{0x10, 0x12, 0x17, 0xff}, {0xd1, 0x5c, 0x5c, 0xff}, {0x6a, 0xa8, 0x5f, 0xff}, {0xe0, 0xb0, 0x4c, 0xff},
	{0x5a, 0x8f, 0xd6, 0xff}, {0xb0, 0x7c, 0xc6, 0xff}, {0x4f, 0xb5, 0xb5, 0xff}, {0xc5, 0xc9, 0xd1, 0xff},
	{0x6b, 0x72, 0x80, 0xff}, {0xf0, 0x7a, 0x78, 0xff}, {0x8f, 0xd1, 0x7e, 0xff}, {0xf0, 0xcd, 0x72, 0xff},
	{0x86, 0xb4, 0xf5, 0xff}, {0xd5, 0xa1, 0xe8, 0xff}, {0x7f, 0xd8, 0xd8, 0xff}, {0xff, 0xff, 0xff, 0xff},
}

// numbered is a colour of the 256.
func numbered(n int) color.RGBA {
	switch {
	case n < 0 || n > 255:
		return ink
	case n < 16:
		return ansi16[n]
	case n < 232:
		step := func(i int) uint8 {
			if i == 0 {
				return 0
			}
			return uint8(55 + 40*i)
		}
		n -= 16
		return color.RGBA{step(n / 36), step(n / 6 % 6), step(n % 6), 0xff}
	}
	grey := uint8(8 + 10*(n-232))
	return color.RGBA{grey, grey, grey, 0xff}
}

// parse makes cells of text whose only sequences are those of looks.
func parse(text string, columns, rows int) [][]cell {
	grid := make([][]cell, rows)
	l := look{fore: ink, back: paper}
	for y, line := range strings.SplitN(text, "\n", rows+1) {
		if y == rows {
			break
		}
		row := make([]cell, 0, columns)
		for state := byte(0); line != ""; {
			seq, width, n, next := ansi.DecodeSequence(line, state, nil)
			state, line = next, line[n:]
			switch {
			case strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m"):
				l.set(seq[2 : len(seq)-1])
			case width > 0 && len(row)+width <= columns:
				row = append(row, cell{seq, width, l})
				for range width - 1 {
					row = append(row, cell{look: l})
				}
			}
		}
		for len(row) < columns {
			row = append(row, cell{" ", 1, look{fore: ink, back: paper}})
		}
		grid[y] = row
	}
	return grid
}

// set changes a look by the parameters of an SGR sequence.
func (l *look) set(params string) {
	words := strings.FieldsFunc(params+";", func(r rune) bool { return r == ';' || r == ':' })
	if len(words) == 0 {
		words = []string{"0"}
	}
	for i := 0; i < len(words); i++ {
		n, _ := strconv.Atoi(words[i])
		switch {
		case n == 0:
			*l = look{fore: ink, back: paper}
		case n == 1:
			l.bold = true
		case n == 2:
			l.faint = true
		case n == 3:
			l.italic = true
		case n == 4:
			l.line = true
		case n == 7:
			l.swap = true
		case n == 9:
			l.strike = true
		case n == 22:
			l.bold, l.faint = false, false
		case n == 23:
			l.italic = false
		case n == 24:
			l.line = false
		case n == 27:
			l.swap = false
		case n == 29:
			l.strike = false
		case n >= 30 && n <= 37:
			l.fore = ansi16[n-30]
		case n >= 90 && n <= 97:
			l.fore = ansi16[n-90+8]
		case n >= 40 && n <= 47:
			l.back = ansi16[n-40]
		case n >= 100 && n <= 107:
			l.back = ansi16[n-100+8]
		case n == 39:
			l.fore = ink
		case n == 49:
			l.back = paper
		case n == 38 || n == 48:
			c, used := extended(words[i+1:])
			i += used
			if n == 38 {
				l.fore = c
			} else {
				l.back = c
			}
		}
	}
}

// extended reads a colour of 256 or of 24 bits, and tells how many words it is.
func extended(words []string) (color.RGBA, int) {
	number := func(i int) int {
		n, _ := strconv.Atoi(words[i])
		return n
	}
	switch {
	case len(words) >= 2 && words[0] == "5":
		return numbered(number(1)), 2
	case len(words) >= 4 && words[0] == "2":
		return color.RGBA{uint8(number(1)), uint8(number(2)), uint8(number(3)), 0xff}, 4
	}
	return ink, len(words)
}

// colours are what a cell is drawn with.
func (l look) colours() (fore, back color.RGBA) {
	fore, back = l.fore, l.back
	if l.swap {
		fore, back = back, fore
	}
	if l.faint {
		fore = mix(back, fore, 0.6)
	}
	return fore, back
}

// mix is a colour between two; much is the share of the second.
func mix(a, b color.RGBA, much float64) color.RGBA {
	one := func(x, y uint8) uint8 { return uint8(float64(x) + (float64(y)-float64(x))*much + 0.5) }
	return color.RGBA{one(a.R, b.R), one(a.G, b.G), one(a.B, b.B), 0xff}
}

// Plainly returns text with the fewest sequences that make it look the same: however
// a terminal came to what it shows, the same screen is the same text.
func Plainly(text string, columns, rows int) string {
	var lines []string
	usual := look{fore: ink, back: paper}
	for _, row := range parse(text, columns, rows) {
		end := len(row)
		for end > 0 && strings.TrimSpace(row[end-1].text) == "" && row[end-1].look.blank() {
			end--
		}
		var b strings.Builder
		was := usual
		for _, c := range row[:end] {
			now := c.look
			if c.text == " " && now.blank() { // nothing of it is seen
				if now = usual; was.blank() {
					now = was
				}
			}
			if now != was {
				b.WriteString(now.sequence())
				was = now
			}
			b.WriteString(c.text)
		}
		if was != usual {
			b.WriteString(usual.sequence())
		}
		lines = append(lines, b.String())
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// blank reports whether nothing is seen of a space with that look.
func (l look) blank() bool { return l.back == paper && !l.swap && !l.line && !l.strike }

// sequence makes a terminal that has any look have this one.
func (l look) sequence() string {
	words := []string{"0"}
	for _, x := range []struct {
		on   bool
		word string
	}{{l.bold, "1"}, {l.faint, "2"}, {l.italic, "3"}, {l.line, "4"}, {l.swap, "7"}, {l.strike, "9"}} {
		if x.on {
			words = append(words, x.word)
		}
	}
	for _, x := range []struct {
		is, usual color.RGBA
		base      int
	}{{l.fore, ink, 30}, {l.back, paper, 40}} {
		if x.is != x.usual {
			words = append(words, coloured(x.is, x.base))
		}
	}
	if len(words) == 1 {
		return "\x1b[m"
	}
	return "\x1b[" + strings.Join(words, ";") + "m"
}

// coloured is the parameter of a colour; base is 30 for the ink and 40 for the paper.
func coloured(c color.RGBA, base int) string {
	for i, known := range ansi16 {
		switch {
		case c == known && i < 8:
			return strconv.Itoa(base + i)
		case c == known:
			return strconv.Itoa(base + 60 + i - 8)
		}
	}
	return strconv.Itoa(base+8) + ";2;" + strconv.Itoa(int(c.R)) + ";" + strconv.Itoa(int(c.G)) + ";" + strconv.Itoa(int(c.B))
}
